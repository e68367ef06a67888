/** IP addresses and networks as pg_hba.conf writes them. Pure: node:net is not for this room. */

/** 4 or 16 bytes. */
export type IpBytes = readonly number[]

export interface IpNetwork {
  readonly base: IpBytes
  readonly mask: IpBytes
}

function parseV4(text: string): number[] | undefined {
  const parts = text.split('.')
  if (parts.length !== 4) return undefined
  const bytes = parts.map((part) => (/^\d{1,3}$/.test(part) ? Number(part) : 256))
  return bytes.every((byte) => byte < 256) ? bytes : undefined
}

function parseGroups(text: string): number[] | undefined {
  if (text === '') return []
  const bytes: number[] = []
  const groups = text.split(':')
  for (const [i, group] of groups.entries()) {
    const v4 = i === groups.length - 1 && group.includes('.') ? parseV4(group) : undefined
    if (v4) bytes.push(...v4)
    else if (/^[0-9a-f]{1,4}$/i.test(group)) {
      const value = Number.parseInt(group, 16)
      bytes.push(value >> 8, value & 0xff)
    } else return undefined
  }
  return bytes
}

function parseV6(text: string): number[] | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const [head, tail] = halves.map((half) => parseGroups(half))
  if (!head) return undefined
  if (halves.length === 1) return head.length === 16 ? head : undefined
  if (!tail || head.length + tail.length > 14) return undefined
  return [...head, ...new Array<number>(16 - head.length - tail.length).fill(0), ...tail]
}

/** undefined when it is no address. The zone of a link-local one (`%eth0`) does not count. */
export function parseIp(text: string): IpBytes | undefined {
  const bare = text.replace(/%.*$/, '')
  return bare.includes(':') ? parseV6(bare) : parseV4(bare)
}

/** An IPv4 address that came through an IPv6 socket, as IPv4. */
export function unmapped(address: IpBytes): IpBytes {
  const isMapped =
    address.length === 16 &&
    address.slice(0, 10).every((byte) => byte === 0) &&
    address[10] === 0xff &&
    address[11] === 0xff
  return isMapped ? address.slice(12) : address
}

/** `10.0.0.0/8` as base and length; undefined when the length does not fit. */
export function networkOf(base: IpBytes, prefix: number): IpNetwork | undefined {
  if (!Number.isInteger(prefix) || prefix < 0 || prefix > base.length * 8) return undefined
  const mask = base.map((_, i) => {
    const bits = Math.min(Math.max(prefix - i * 8, 0), 8)
    return (0xff << (8 - bits)) & 0xff
  })
  return { base, mask }
}

export function isInNetwork(address: IpBytes, network: IpNetwork): boolean {
  if (address.length !== network.base.length) return false
  return address.every((byte, i) => {
    const mask = network.mask[i] as number
    return (byte & mask) === ((network.base[i] as number) & mask)
  })
}
