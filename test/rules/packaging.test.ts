/** packaging/: what its files name is there, and what they configure is a configuration. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load-config.js'
import { findTool } from '../support/tools.js'

const read = (path: string): string => readFileSync(join('packaging', path), 'utf8')

describe('Dockerfile', () => {
  const text = read('Dockerfile')
  const lines = text
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => /^[A-Z]+ /.test(line))
  const stages = lines.filter((line) => line.startsWith('FROM ')).map((line) => line.split(' ')[1])
  const runtime = lines.slice(
    lines.lastIndexOf(lines.findLast((line) => line.startsWith('FROM '))!),
  )

  it('copies files that exist and that its ignore file lets through', () => {
    const ignored = read('Dockerfile.dockerignore').split('\n')
    const sources = lines
      .filter((line) => line.startsWith('COPY ') && !line.includes('--from='))
      .flatMap((line) => line.split(/\s+/).slice(1, -1))
    expect(sources).toContain('src')
    for (const source of sources) {
      expect(existsSync(source.replace('./', '')), source).toBe(true)
      expect(ignored).toContain(`!${source.replace('./', '')}`)
    }
  })

  it('copies from the build what a package holds', () => {
    const copied = runtime.filter((line) => line.startsWith('COPY --from=build')).join(' ')
    for (const name of ['node_modules', 'dist', 'bin', 'package.json', 'oclif.manifest.json'])
      expect(copied).toContain(`/build/${name}`)
  })

  it('has two stages on one image, runs as nobody special, and is looked after', () => {
    expect(new Set(stages).size).toBe(1)
    expect(stages.length).toBe(2)
    expect(runtime).toContain('USER node')
    expect(runtime.some((line) => line.startsWith('HEALTHCHECK'))).toBe(true)
    expect(runtime.filter((line) => /^RUN/.test(line)).join()).not.toMatch(/npm|curl|wget|apt/)
    expect(runtime.find((line) => line.startsWith('CMD'))).toMatch(/^CMD \["serve"/)
  })

  it('sets variables that are keys of the configuration', () => {
    const port = loadConfig({
      databaseUrls: ['postgres://a:b@127.0.0.1/x'],
      env: { PGDOG_HEALTHCHECK_PORT: '8080' },
    }).general.healthcheckPort
    expect(text).toContain('PGDOG_HEALTHCHECK_PORT=8080')
    expect(port).toBe(8080)
  })
})

describe('systemd', () => {
  it.skipIf(!findTool('systemd-analyze'))('takes the unit', () => {
    const unit = 'packaging/systemd/pgshard.service'
    const run = spawnSync('systemd-analyze', ['verify', '--man=no', unit], { encoding: 'utf8' })
    expect([run.status, run.stderr]).toEqual([0, ''])
  })

  it('starts, reloads and stops what serve understands', () => {
    const unit = read('systemd/pgshard.service')
    expect(unit).toMatch(/^ExecStart=.*pgshard serve --config \S+ --users \S+/m)
    expect(unit).toMatch(/^ExecReload=.*-HUP/m)
    expect(Number(/^TimeoutStopSec=(\d+)s$/m.exec(unit)?.[1])).toBeGreaterThan(60)
  })
})

/** The lines of a block (`key: |`), without their indentation. */
function block(text: string, key: string): string {
  const lines = text.split('\n')
  const start = lines.findIndex((line) => line.trim() === `${key}: |`)
  const indent = /^ */.exec(lines[start]!)![0].length
  const rest = lines.slice(start + 1)
  const end = rest.findIndex((line) => line.trim() !== '' && /^ */.exec(line)![0].length <= indent)
  return rest
    .slice(0, end < 0 ? undefined : end)
    .map((line) => line.slice(indent + 2))
    .join('\n')
}

describe('Kubernetes', () => {
  const files = readdirSync('packaging/kubernetes').filter((name) => name !== 'kustomization.yaml')
  const all = files.map((name) => read(`kubernetes/${name}`)).join('\n---\n')

  it('lists every manifest', () => {
    const listed = [...read('kubernetes/kustomization.yaml').matchAll(/- (\S+\.yaml)/g)]
    expect(listed.map(([, name]) => name).sort()).toEqual(files.sort())
  })

  it.skipIf(!findTool('kubectl'))('is YAML that kubectl reads', () => {
    const run = spawnSync('kubectl', ['kustomize', 'packaging/kubernetes'], { encoding: 'utf8' })
    expect([run.status, run.stderr]).toEqual([0, ''])
    const kinds = [...run.stdout.matchAll(/^kind: (\w+)/gm)].map(([, kind]) => kind)
    expect(kinds.sort()).toEqual([
      'ConfigMap',
      'PodDisruptionBudget',
      'Secret',
      'Service',
      'Service',
      'StatefulSet',
    ])
  })

  it('holds a configuration that serve takes, on the ports that are probed', () => {
    const directory = mkdtempSync(join(tmpdir(), 'packaging-'))
    writeFileSync(
      join(directory, 'pgdog.toml'),
      block(read('kubernetes/configmap.yaml'), 'pgdog.toml'),
    )
    writeFileSync(
      join(directory, 'users.toml'),
      block(read('kubernetes/secret.yaml'), 'users.toml'),
    )
    const config = loadConfig({
      configPath: join(directory, 'pgdog.toml'),
      databaseUrls: [],
      env: {},
    })
    expect(config.warnings).toEqual([])
    const { port, healthcheckPort, openmetricsPort, shutdownTimeoutMs } = config.general
    const named = Object.fromEntries(
      [...all.matchAll(/name: (\w+), containerPort: (\d+)/g)].map(([, name, number]) => [
        name,
        Number(number),
      ]),
    )
    expect(named).toEqual({ postgres: port, health: healthcheckPort, metrics: openmetricsPort })
    const grace = Number(/terminationGracePeriodSeconds: (\d+)/.exec(all)?.[1])
    expect(grace * 1000).toBeGreaterThan(shutdownTimeoutMs)
  })

  it('names pods in the string of clients as the set makes them', () => {
    const replicas = Number(/replicas: (\d+)/.exec(all)?.[1])
    const hosts = /host=(\S+) port=6432/.exec(all)?.[1]?.split(',')
    expect(hosts).toEqual(Array.from({ length: replicas }, (_, n) => `pgshard-${n}.pgshard`))
    expect(all).toMatch(/serviceName: pgshard\n/)
  })
})
