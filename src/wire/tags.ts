/**
 * Message tags of protocol 3.x, and the codes that stand in the place of a version in a startup packet.
 * @see PostgreSQL documentation, "Message Formats"; `src/include/libpq/protocol.h`, `pqcomm.h`
 */

const code = (letter: string): number => letter.charCodeAt(0)

/** Messages that a client sends. */
export const frontend = {
  bind: code('B'),
  close: code('C'),
  copyData: code('d'),
  copyDone: code('c'),
  copyFail: code('f'),
  describe: code('D'),
  execute: code('E'),
  flush: code('H'),
  functionCall: code('F'),
  parse: code('P'),
  /** PasswordMessage, SASLInitialResponse, SASLResponse, GSSResponse. */
  password: code('p'),
  query: code('Q'),
  sync: code('S'),
  terminate: code('X'),
} as const

/** Messages that a server sends. */
export const backend = {
  authentication: code('R'),
  backendKeyData: code('K'),
  bindComplete: code('2'),
  closeComplete: code('3'),
  commandComplete: code('C'),
  copyBothResponse: code('W'),
  copyData: code('d'),
  copyDone: code('c'),
  copyInResponse: code('G'),
  copyOutResponse: code('H'),
  dataRow: code('D'),
  emptyQueryResponse: code('I'),
  errorResponse: code('E'),
  functionCallResponse: code('V'),
  negotiateProtocolVersion: code('v'),
  noData: code('n'),
  noticeResponse: code('N'),
  notificationResponse: code('A'),
  parameterDescription: code('t'),
  parameterStatus: code('S'),
  parseComplete: code('1'),
  portalSuspended: code('s'),
  readyForQuery: code('Z'),
  rowDescription: code('T'),
} as const

export const PROTOCOL_3_0 = 196_608
export const PROTOCOL_3_2 = 196_610
export const CANCEL_REQUEST_CODE = 80_877_102
export const SSL_REQUEST_CODE = 80_877_103
export const GSSENC_REQUEST_CODE = 80_877_104

/** `MAX_STARTUP_PACKET_LENGTH` in `src/include/libpq/pqcomm.h`. */
export const MAX_STARTUP_BYTES = 10_000
/** `PQ_LARGE_MESSAGE_LIMIT`: the largest body PostgreSQL accepts, `MaxAllocSize - 1` (1 GB − 2). */
export const MAX_BODY_BYTES = 0x3fff_fffe

/** Transaction states in ReadyForQuery. */
export const TX_IDLE = code('I')
export const TX_OPEN = code('T')
export const TX_FAILED = code('E')
