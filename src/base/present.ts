/** Objects without their undefined members, as optional properties want them. */

type Required_<T> = { readonly [K in keyof T as undefined extends T[K] ? never : K]: T[K] }
type Optional_<T> = {
  readonly [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}
export type Present<T> = Required_<T> & Optional_<T>

/** A frozen copy without the members that are undefined. */
export function present<T extends object>(object: T): Present<T> {
  const entries = Object.entries(object).filter(([, member]) => member !== undefined)
  return Object.freeze(Object.fromEntries(entries)) as Present<T>
}
