/** The web page over HTTP: its files, its stream of events, and who may have them. */
import { readFileSync } from 'node:fs'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { sharedAsset } from '../report/assets.js'
import type { Feed } from './feed.js'
import type { HttpRoutes } from './http-server.js'
import type { WebAccess } from './web-token.js'

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

const safety: Readonly<Record<string, string>> = {
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'cache-control': 'no-store',
}

const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  html: 'text/html; charset=utf-8',
}

const own = ['app.js', 'overview.js', 'panels.js', 'table.js', 'page.css', 'favicon.svg'] as const
const shared = ['charts.js', 'format.js', 'theme.css', 'uplot.js', 'uplot.css'] as const

const ownFile = (name: string): string =>
  readFileSync(new URL(`./page/${name}`, import.meta.url), 'utf8')

/** A page that does not read is told less, not kept in memory. */
const MOST_UNREAD_BYTES = 4 * 1024 * 1024

export function pageRoutes(feed: Feed, access: WebAccess): HttpRoutes {
  return (app) => {
    app.addHook('onRequest', async (_request, reply) => {
      reply.headers(safety)
    })
    app.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string' },
      (_request, body, done) => done(null, new URLSearchParams(body as string)),
    )
    const isKnown = (request: FastifyRequest) =>
      access.isKnown(request.headers, request.socket.localPort ?? 0)
    const known = async (request: FastifyRequest, reply: FastifyReply) => {
      if (!isKnown(request)) await reply.code(401).type('text/plain').send('the token is missing\n')
    }
    entrance(app, access, isKnown)
    for (const [name, text] of files())
      app.get(`/${name}`, async (_request, reply) => reply.type(typeOf(name)).send(text))
    app.get('/api/now', { preHandler: known }, async () => feed.now())
    app.get('/events', { preHandler: known }, (request, reply) => stream(feed, request, reply))
  }
}

const typeOf = (name: string): string => types[name.split('.').at(-1) ?? ''] ?? 'text/plain'

function files(): Map<string, string> {
  return new Map<string, string>([
    ...own.map((name) => [name, ownFile(name)] as const),
    ...shared.map((name) => [name, sharedAsset(name)] as const),
  ])
}

/** The page itself: for those who are known, and for who brings the token; others are asked for it. */
function entrance(
  app: FastifyInstance,
  access: WebAccess,
  isKnown: (request: FastifyRequest) => boolean,
): void {
  const page = ownFile('index.html')
  const door = ownFile('door.html')
  const refusal = door.replace('hidden', '')
  const letIn = (request: FastifyRequest, reply: FastifyReply) =>
    reply.header('set-cookie', access.cookie(request.socket.localPort ?? 0))
  app.get('/', async (request, reply) => {
    reply.type('text/html; charset=utf-8')
    const { token } = request.query as { token?: unknown }
    if (token !== undefined && access.isToken(token)) return letIn(request, reply).send(page)
    if (isKnown(request)) return reply.send(page)
    return reply.code(token === undefined ? 401 : 403).send(token === undefined ? door : refusal)
  })
  app.post('/', async (request, reply) => {
    const token = request.body instanceof URLSearchParams ? request.body.get('token') : undefined
    if (access.isToken(token)) return letIn(request, reply).redirect('/', 303)
    return reply.code(403).type('text/html; charset=utf-8').send(refusal)
  })
}

/** Server-sent events: one message a moment, until the page goes. */
function stream(feed: Feed, request: FastifyRequest, reply: FastifyReply): void {
  reply.hijack()
  const { raw } = reply
  raw.writeHead(200, {
    ...safety,
    'content-type': 'text/event-stream; charset=utf-8',
    'x-accel-buffering': 'no',
  })
  const end = feed.watch((message) => {
    if (raw.writableLength > MOST_UNREAD_BYTES) return
    raw.write(`data: ${JSON.stringify(message)}\n\n`)
  })
  request.raw.on('close', end)
  raw.on('error', end)
}
