/** Where connection strings are read in tests: no variables, no files. */
import type { ConninfoEnvironment } from '../../src/topology/conninfo.js'

export const bareEnvironment: ConninfoEnvironment = {
  variables: {},
  userName: 'me',
  homeDirectory: '/',
  defaultHost: 'localhost',
  readFile: () => undefined,
}
