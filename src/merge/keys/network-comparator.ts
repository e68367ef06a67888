/** inet and cidr. Follows `network_cmp_internal` in src/backend/utils/adt/network.c: common bits, then length, then all bits. */
import type { Comparator } from './comparator.js'
import { refuseForm } from './read-times.js'

/** Family (2 or 3, as sent) · bits · 16 bytes of address. */
const SLOT_BYTES = 18
const V4 = 2
const V6 = 3

/** One value, as in a slot. */
const one = new Uint8Array(SLOT_BYTES)

/** Byte1 family · Byte1 bits · Byte1 is cidr · Byte1 length · address */
function readBinary(bytes: Buffer, from: number, to: number): void {
  one.fill(0)
  one[0] = bytes[from] as number
  one[1] = bytes[from + 1] as number
  one.set(bytes.subarray(from + 4, Math.min(to, from + 20)), 2)
}

/** Writes four decimal numbers at `at`; false when they are none. */
function setV4(text: string, at: number): boolean {
  const parts = text.split('.')
  if (parts.length !== 4) return false
  parts.forEach((part, i) => {
    one[at + i] = Number(part)
  })
  return true
}

/** Groups of hexadecimal digits, the last perhaps an IPv4 address, as bytes. */
function groupBytes(text: string): number {
  if (text === '') return 0
  return text.split(':').reduce((size, group) => size + (group.includes('.') ? 4 : 2), 0)
}

function setGroups(text: string, from: number): void {
  let at = from
  for (const group of text === '' ? [] : text.split(':')) {
    if (group.includes('.')) {
      setV4(group, at)
      at += 4
      continue
    }
    const value = Number.parseInt(group, 16)
    one[at++] = value >> 8
    one[at++] = value
  }
}

function readText(bytes: Buffer, from: number, to: number): void {
  const [address = '', bits] = bytes.toString('latin1', from, to).split('/')
  one.fill(0)
  if (address.includes(':')) {
    const [head = '', tail] = address.split('::')
    one[0] = V6
    one[1] = bits === undefined ? 128 : Number(bits)
    setGroups(head, 2)
    if (tail !== undefined) setGroups(tail, SLOT_BYTES - groupBytes(tail))
    return
  }
  one[0] = V4
  one[1] = bits === undefined ? 32 : Number(bits)
  if (!setV4(address, 2)) refuseForm('inet')
}

export class NetworkComparator implements Comparator {
  readonly #isBinary: boolean
  #slots = new Uint8Array(SLOT_BYTES * 16)

  constructor(isBinary: boolean) {
    this.#isBinary = isBinary
  }

  read(bytes: Buffer, from: number, to: number, slot: number): void {
    if (this.#isBinary) readBinary(bytes, from, to)
    else readText(bytes, from, to)
    this.#reserve(slot)
    this.#slots.set(one, slot * SLOT_BYTES)
  }

  compare(a: number, b: number): number {
    const slots = this.#slots
    const atA = a * SLOT_BYTES
    const atB = b * SLOT_BYTES
    const family = (slots[atA] as number) - (slots[atB] as number)
    if (family !== 0) return family
    const bitsA = slots[atA + 1] as number
    const bitsB = slots[atB + 1] as number
    const common = this.#compareBits(atA + 2, atB + 2, Math.min(bitsA, bitsB))
    if (common !== 0) return common
    return bitsA - bitsB || this.#compareBits(atA + 2, atB + 2, 128)
  }

  #compareBits(atA: number, atB: number, bits: number): number {
    const whole = bits >> 3
    for (let i = 0; i < whole; i++) {
      const difference = (this.#slots[atA + i] as number) - (this.#slots[atB + i] as number)
      if (difference !== 0) return difference
    }
    const rest = bits & 7
    if (rest === 0) return 0
    const shift = 8 - rest
    const byteA = (this.#slots[atA + whole] as number) >> shift
    return byteA - ((this.#slots[atB + whole] as number) >> shift)
  }

  keep(from: number, to: number): void {
    this.#reserve(to)
    this.#slots.copyWithin(to * SLOT_BYTES, from * SLOT_BYTES, (from + 1) * SLOT_BYTES)
  }

  identity(slot: number): string {
    return Buffer.from(this.#slots.buffer, slot * SLOT_BYTES, SLOT_BYTES).toString('latin1')
  }

  #reserve(slot: number): void {
    if ((slot + 1) * SLOT_BYTES <= this.#slots.length) return
    const bigger = new Uint8Array(Math.max((slot + 1) * SLOT_BYTES, this.#slots.length * 2))
    bigger.set(this.#slots)
    this.#slots = bigger
  }
}
