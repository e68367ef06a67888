import type { CatalogueEntry } from '../catalogue-entry.js'

export const authErrors = {} as const satisfies Record<string, CatalogueEntry>
