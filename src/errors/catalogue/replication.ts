import type { CatalogueEntry } from '../catalogue-entry.js'

export const replicationErrors = {} as const satisfies Record<string, CatalogueEntry>
