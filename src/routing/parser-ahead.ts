/** For commands that plan: the parser is compiled while the rest of the program is still being loaded. */
import { loadParser } from '../sql/parse.js'

/** Never rejects; the planner asks again, and tells what is wrong. */
export const startParser = (): void => void loadParser().catch(() => undefined)
