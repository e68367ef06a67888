import { describe, expect, it } from 'vitest'
import { Balancer, type BalancingStrategy } from '../../../src/pool/balancer.js'

interface Host {
  name: string
  weight: number
  lent: number
  isHealthy: boolean
}

const host = (name: string, rest: Partial<Host> = {}): Host => ({
  name,
  weight: 255,
  lent: 0,
  isHealthy: true,
  ...rest,
})

function firsts(strategy: BalancingStrategy, hosts: Host[], count: number): string[] {
  let seed = 7
  const random = () => {
    seed = (seed * 16807) % 2147483647
    return seed / 2147483647
  }
  const balancer = new Balancer(strategy, random)
  return Array.from({ length: count }, () => balancer.order(hosts)[0]?.name ?? '')
}

const tally = (names: string[]): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

describe('balancing', () => {
  it('round robin takes turns', () => {
    expect(firsts('round_robin', [host('a'), host('b'), host('c')], 6).join('')).toBe('abcabc')
  })

  it('weighted round robin gives shares by weight, evenly spread', () => {
    const order = firsts(
      'weighted_round_robin',
      [host('a', { weight: 2 }), host('b', { weight: 1 })],
      9,
    )
    expect(tally(order)).toEqual({ a: 6, b: 3 })
    expect(order.join('')).not.toContain('aaa')
  })

  it('gives weight 0 nothing while another is there', () => {
    const hosts = [host('a', { weight: 0 }), host('b', { weight: 1 })]
    expect(tally(firsts('weighted_round_robin', hosts, 5))).toEqual({ b: 5 })
    expect(firsts('weighted_round_robin', [host('a', { weight: 0 })], 1)).toEqual(['a'])
  })

  it('least active takes the one with the fewest lent, and spreads equals', () => {
    expect(
      tally(
        firsts('least_active_connections', [host('a', { lent: 2 }), host('b', { lent: 1 })], 5),
      ),
    ).toEqual({ b: 5 })
    const equal = tally(firsts('least_active_connections', [host('a'), host('b')], 200))
    expect(equal['a']).toBeGreaterThan(50)
    expect(equal['b']).toBeGreaterThan(50)
  })

  it('random is about even', () => {
    const counts = tally(firsts('random', [host('a'), host('b'), host('c')], 900))
    for (const name of 'abc') expect(counts[name]).toBeGreaterThan(230)
  })

  it('tries broken hosts last but does not leave them out', () => {
    const balancer = new Balancer('round_robin', () => 0)
    const hosts = [host('a', { isHealthy: false }), host('b')]
    for (let i = 0; i < 3; i++)
      expect(balancer.order(hosts).map((one) => one.name)).toEqual(['b', 'a'])
  })
})
