import type { CatalogueEntry } from '../catalogue-entry.js'

export const poolErrors = {} as const satisfies Record<string, CatalogueEntry>
