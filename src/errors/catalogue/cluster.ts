import type { CatalogueEntry } from '../catalogue-entry.js'

export const clusterErrors = {} as const satisfies Record<string, CatalogueEntry>
