/** What the clients of the isolation canary do, and how often: the same on any machine. */
import { say } from '../../support/wire-client.js'

/** How often a client does each in one round. */
const DECK = {
  transaction: 10,
  sharedReads: 6,
  prepared: 4,
  pipeline: 4,
  implicitTransaction: 2,
  setting: 3,
  notice: 2,
  raise: 1,
  copyOut: 1,
  notify: 1,
  temporary: 1,
  ownCancel: 2,
  racingCancel: 3,
  statementTimeout: 2,
  vanish: 2,
} as const

export type Deed = keyof typeof DECK
export const deeds = Object.keys(DECK) as Deed[]
/** How often every client has done each deed when all have played their deck once. */
export const timesPlayed = (deed: Deed): number => DECK[deed]

/** One round in the order that `random` gives. */
export function shuffledDeck(random: (below: number) => number): Deed[] {
  const deck = deeds.flatMap((deed) => Array<Deed>(DECK[deed]).fill(deed))
  for (let i = deck.length - 1; i > 0; i--) {
    const j = random(i + 1)
    const one = deck[i] as Deed
    deck[i] = deck[j] as Deed
    deck[j] = one
  }
  return deck
}

/** One statement in one of the three ways. */
export function requestOf(sql: string, random: (below: number) => number): Buffer[] {
  switch (random(3)) {
    case 0:
      return [say.query(sql)]
    case 1:
      return [say.parse('', sql), say.bind(''), say.execute(), say.sync()]
    default:
      return [
        say.close('again'),
        say.parse('again', sql),
        say.describe('again'),
        say.bind('again'),
        say.execute(),
        say.sync(),
      ]
  }
}
