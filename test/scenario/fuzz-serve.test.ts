/** Hostile bytes at every door of a real serve: it stays up, serves the others, and keeps nothing of who has gone. */
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { randomOf } from '../support/random-of.js'
import { type Served, startServe } from '../support/serve.js'
import { bySize, testSize } from '../support/test-size.js'
import { usePostgres } from '../support/use-postgres.js'
import { waitFor } from '../support/wait-for.js'
import { WireClient } from '../support/wire-client.js'
import { authBytes, bindBytes, frameBytes, type Random, startupBytes } from './fuzz-bytes.js'

const SECONDS = bySize(20, 600)
const LANES = 8
const PASSWORD = 'fuzz'
/** How long serve may take to be done with a client that has said its last word. */
const PATIENCE_MS = 20_000
/** Growth after the first third, when everything has been used; the heap breathes. */
const GROWTH_KB = 65_536
const SEED = testSize === 'quick' ? 20_260_101 : Date.now()

const residentKb = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])

describe('a serve that is sent nonsense', () => {
  const postgres = usePostgres({ version: 15 })

  /** Sends, ends, and waits until serve has closed its side. */
  const throwAt = (port: number, bytes: Buffer, random: Random): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1')
      const timer = setTimeout(() => {
        socket.destroy()
        reject(new Error(`still open after ${PATIENCE_MS} ms: ${bytes.toString('hex')}`))
      }, PATIENCE_MS)
      socket.resume()
      socket.on('error', () => undefined)
      socket.on('close', () => {
        clearTimeout(timer)
        resolve()
      })
      const cut = random(3) === 0 ? random(bytes.length + 1) : bytes.length
      socket.write(bytes.subarray(0, cut))
      setImmediate(() => socket.end(bytes.subarray(cut)))
    })

  const throwAfterLogin = async (served: Served, bytes: Buffer): Promise<void> => {
    const { port, database } = served
    const client = await WireClient.open({ port, database, password: PASSWORD })
    client.socket.removeAllListeners('data').resume()
    const closed = new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        client.socket.destroy()
        reject(new Error(`still open after ${PATIENCE_MS} ms: ${bytes.toString('hex')}`))
      }, PATIENCE_MS)
      client.socket.once('close', () => {
        clearTimeout(timer)
        resolve()
      })
    })
    client.socket.end(bytes)
    await closed
  }

  const attack = (served: Served, random: Random): Promise<void> => {
    switch (random(4)) {
      case 0:
        return throwAt(served.port, startupBytes(random), random)
      case 1:
        return throwAt(served.port, authBytes(random), random)
      case 2:
        return throwAfterLogin(served, frameBytes(random))
      default:
        return throwAfterLogin(served, bindBytes(random))
    }
  }

  test(
    `D30, D55: ${SECONDS} s of it at startup, authentication, frames and Bind (seed ${SEED})`,
    async () => {
      const { host, port } = postgres().servers[0]!
      const served = await startServe({
        shards: [{ host, port, database: postgres().database }],
        general: ['default_pool_size = 4', 'client_login_timeout = 5000', 'max_client_conn = 1000'],
        password: PASSWORD,
      })
      const { pid } = served.program
      const steady = await served.connect()
      const begun = performance.now()
      const elapsed = () => (performance.now() - begun) / 1000
      let attacks = 0
      let warm: number | undefined
      const lane = async (number: number) => {
        const random = randomOf(SEED + number)
        while (elapsed() < SECONDS) {
          await attack(served, random)
          attacks++
          if (elapsed() > SECONDS / 3) warm ??= residentKb(pid)
        }
      }
      const watch = async () => {
        for (let n = 0; elapsed() < SECONDS; n++) {
          const { rows } = await steady.query('select $1::int as n', [n])
          expect(rows).toEqual([{ n }])
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
      }
      await Promise.all([watch(), ...Array.from({ length: LANES }, (_, n) => lane(n))])
      expect(attacks).toBeGreaterThan(SECONDS * 10)
      expect(residentKb(pid) - (warm ?? 0)).toBeLessThan(GROWTH_KB)
      expect(served.program.stderr + served.program.stdout).not.toMatch(
        /internal error|unhandled|TypeError|RangeError/i,
      )

      const console = new pg.Client({ connectionString: served.adminUrl })
      await console.connect()
      await waitFor(async () => {
        const { rows } = await console.query('show clients')
        return rows.filter(({ database }) => database === 'app').length === 1
      })
      await waitFor(async () => {
        const { rows } = await console.query('show pools')
        return rows.every((row) => Number(row.sv_active) === 0 && Number(row.cl_waiting) === 0)
      })
      await console.end()
      await steady.end()
    },
    (SECONDS + 120) * 1000,
  )
})
