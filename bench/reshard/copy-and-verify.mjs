/** Copy against pg_dump | psql, verify against COPY OUT. */
import { cleanupRun } from '../../dist/src/reshard/cleanup.js'
import { verifyQuiet } from '../../dist/src/reshard/verify/verify.js'
import {
  clock,
  drop,
  fill,
  makeDatabases,
  median,
  move,
  only,
  ROUNDS,
  ROWS,
  shell,
  side,
  tell,
  timed,
  tool,
  url,
} from './stage.mjs'

export async function copyAndVerify() {
  const from = await makeDatabases(2)
  await fill(from, ROWS)
  const source = side('a', from)
  const times = { ours: [], dump: [], verify: [], out: [] }
  for (let round = 0; round < ROUNDS; round++) {
    const to = await makeDatabases(4)
    const target = side('b', to)
    let begun = 0
    await move(source, target, 'copy', {
      step: (text) => {
        if (text.startsWith('copying')) begun = performance.now()
      },
    })
    times.ours.push((performance.now() - begun) / 1000)
    if (only.has('verify')) {
      times.verify.push(
        await timed(async () => {
          const report = await verifyQuiet({ source, target, clock })
          if (!report.same) throw new Error('verify found a difference')
        }),
      )
      times.out.push(
        await timed(() =>
          Promise.all(
            [...from, ...to].map((name) =>
              shell(`${tool('psql')} -qX '${url(name)}' -c '\\copy acct to /dev/null'`),
            ),
          ),
        ),
      )
    }
    await cleanupRun({ from: source, to: target, clock, dropTarget: true, liftFence: false })
    const plain = await makeDatabases(2)
    times.dump.push(
      await timed(() =>
        Promise.all(
          from.map((name, i) =>
            shell(
              `${tool('pg_dump')} -t acct '${url(name)}' | ${tool('psql')} -qX '${url(plain[i])}' && ${tool('psql')} -qX '${url(plain[i])}' -c analyze`,
            ),
          ),
        ),
      ),
    )
    await drop([...to, ...plain])
  }
  const rate = (seconds) => `${Math.round(ROWS / seconds / 1000)} k rows/s`
  if (only.has('copy')) {
    const [ours, peer] = [median(times.ours), median(times.dump)]
    tell(
      'copy 2 → 4, one reader a source, keys and ANALYZE included, against pg_dump | psql',
      rate(ours),
      rate(peer),
      peer / ours,
      1.3,
    )
  }
  if (only.has('verify')) {
    const [ours, peer] = [median(times.verify), median(times.out)]
    tell('verify against COPY OUT of both sides', rate(ours), rate(peer), peer / ours, 0.5)
  }
  await drop(from)
}
