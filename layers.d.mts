/** Room → the rooms that it may import. */
export const rooms: Readonly<Record<string, readonly string[]>>
