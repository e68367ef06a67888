/** Who may log in to which database, with which secrets. An immutable value; reload builds a new one. */

export interface UserEntry {
  readonly name: string
  /** Databases that exist. */
  readonly databases: readonly string[]
  /** Passwords in clear, any of which is accepted. */
  readonly passwords: readonly string[]
  /** SCRAM verifier. */
  readonly passwordHash?: string
}

export class UserTable<Entry extends UserEntry = UserEntry> {
  readonly #byName = new Map<string, Entry[]>()

  constructor(entries: Iterable<Entry>) {
    for (const entry of entries) {
      const known = this.#byName.get(entry.name)
      if (known) known.push(entry)
      else this.#byName.set(entry.name, [entry])
    }
  }

  /** The first entry of this user that names the database. */
  find(user: string, database: string): Entry | undefined {
    return this.#byName.get(user)?.find((entry) => entry.databases.includes(database))
  }

  /** True when the user exists, for whatever database. */
  hasUser(user: string): boolean {
    return this.#byName.has(user)
  }

  /** What proves this user for any of its databases. */
  secretsAnywhere(user: string): readonly string[] {
    return (this.#byName.get(user) ?? []).flatMap(secretsOf)
  }

  /** What proves this user: passwords and the verifier; empty when there is no such user, or no secret. */
  secrets(user: string, database: string): readonly string[] {
    const entry = this.find(user, database)
    return entry ? secretsOf(entry) : []
  }
}

export function secretsOf(entry: UserEntry): readonly string[] {
  const secrets = entry.passwords.filter((password) => password !== '')
  return entry.passwordHash === undefined ? secrets : [entry.passwordHash, ...secrets]
}
