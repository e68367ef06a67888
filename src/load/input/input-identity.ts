/** Which data a job is about: size and the hashes of the first and the last megabyte. Standard input: its beginning only. */
import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { CopyInput } from './open-input.js'

export interface InputIdentity {
  readonly name: string
  readonly size?: number
  readonly head: string
  readonly tail?: string
}

const SAMPLE_BYTES = 1 << 20

const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

/** The identity, and the input to read on with: of standard input the beginning is kept. */
export async function identify(
  input: CopyInput,
): Promise<{ identity: InputIdentity; input: CopyInput }> {
  const { name, sizeBytes } = input
  if (sizeBytes === undefined) return await identifyStream(input)
  const file = await open(name)
  try {
    const sample = async (position: number) => {
      const bytes = Buffer.alloc(Math.min(SAMPLE_BYTES, sizeBytes))
      const { bytesRead } = await file.read(bytes, 0, bytes.length, position)
      return hash(bytes.subarray(0, bytesRead))
    }
    const head = await sample(0)
    const tail = await sample(Math.max(0, sizeBytes - SAMPLE_BYTES))
    return { identity: { name, size: sizeBytes, head, tail }, input }
  } finally {
    await file.close()
  }
}

async function identifyStream(
  input: CopyInput,
): Promise<{ identity: InputIdentity; input: CopyInput }> {
  const source = input.open()
  const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const pieces: Buffer[] = []
  let length = 0
  while (length < SAMPLE_BYTES) {
    const next = await chunks.next()
    if (next.done === true) break
    pieces.push(next.value)
    length += next.value.length
  }
  const head = Buffer.concat(pieces)
  async function* all(): AsyncGenerator<Buffer> {
    try {
      if (head.length > 0) yield head
      for (;;) {
        const next = await chunks.next()
        if (next.done === true) return
        yield next.value
      }
    } finally {
      source.destroy()
    }
  }
  return {
    identity: { name: input.name, head: hash(head.subarray(0, SAMPLE_BYTES)) },
    input: {
      name: input.name,
      sample: head,
      open: () => Readable.from(all(), { highWaterMark: 1 }),
    },
  }
}

/** What differs between two identities in words, or undefined. */
export function differenceOf(was: InputIdentity, is: InputIdentity): string | undefined {
  if (was.size !== is.size) return `it had ${was.size ?? '?'} bytes and has ${is.size ?? '?'}`
  if (was.head !== is.head) return 'its first megabyte has changed'
  if (was.tail !== is.tail) return 'its last megabyte has changed'
  return undefined
}
