import { describe, expect, it } from 'vitest'
import { Balancer, type BalancingStrategy } from '../../../src/pool/balancer.js'

interface Host {
  name: string
  weight: number
  lent: number
  heldMs: number
  isHealthy: boolean
}

const host = (name: string, rest: Partial<Host> = {}): Host => ({
  name,
  weight: 255,
  lent: 0,
  heldMs: 0,
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
  it('D91: round robin takes turns, exactly n/2 each', () => {
    expect(firsts('round_robin', [host('a'), host('b'), host('c')], 6).join('')).toBe('abcabc')
    expect(tally(firsts('round_robin', [host('a'), host('b')], 100))).toEqual({ a: 50, b: 50 })
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

  it('D91: least active takes the one with the fewest lent, and spreads equals', () => {
    expect(
      tally(
        firsts('least_active_connections', [host('a', { lent: 2 }), host('b', { lent: 1 })], 5),
      ),
    ).toEqual({ b: 5 })
    const equal = tally(firsts('least_active_connections', [host('a'), host('b')], 200))
    expect(equal['a']).toBeGreaterThan(50)
    expect(equal['b']).toBeGreaterThan(50)
  })

  it('D91: random is even by a chi-square test', () => {
    const counts = tally(firsts('random', [host('a'), host('b'), host('c')], 900))
    const chiSquare = [...'abc'].reduce(
      (sum, name) => sum + ((counts[name] ?? 0) - 300) ** 2 / 300,
      0,
    )
    expect(chiSquare).toBeLessThan(9.21) // 2 degrees of freedom, p = 0.01
  })

  it('best response time takes the fastest, and now and then looks whether another has become faster', () => {
    const hosts = [host('a', { heldMs: 9 }), host('b', { heldMs: 2 }), host('c', { heldMs: 5 })]
    const counts = tally(firsts('best_response_time', hosts, 160))
    expect(counts['b']).toBe(150)
    expect(counts['a']).toBe(5)
    expect(counts['c']).toBe(5)
    const fresh = [host('a', { heldMs: 9 }), host('b')]
    expect(firsts('best_response_time', fresh, 1)).toEqual(['b'])
  })

  it('server affinity stays with the first host, and takes the next while that is broken', () => {
    expect(tally(firsts('server_affinity', [host('a'), host('b')], 9))).toEqual({ a: 9 })
    const broken = [host('a', { isHealthy: false }), host('b')]
    expect(tally(firsts('server_affinity', broken, 9))).toEqual({ b: 9 })
  })

  it('tries broken hosts last but does not leave them out', () => {
    const balancer = new Balancer('round_robin', () => 0)
    const hosts = [host('a', { isHealthy: false }), host('b')]
    for (let i = 0; i < 3; i++)
      expect(balancer.order(hosts).map((one) => one.name)).toEqual(['b', 'a'])
  })
})
