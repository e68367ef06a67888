import { rooms } from './layers.mjs'

const only = ([room, uses]) => ({
  name: `floor-of-${room}`,
  severity: 'error',
  from: { path: `^src/${room}/` },
  to: { path: '^(src|commands|test)/', pathNot: `^src/(${[room, ...uses].join('|')})/` },
})

export default {
  forbidden: [
    ...Object.entries(rooms).map(only),
    { name: 'no-circle', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'unlisted-room',
      severity: 'error',
      from: { path: `^src/(?!index\\.ts$|(${Object.keys(rooms).join('|')})/)` },
      to: {},
    },
    {
      name: 'only-cli-and-commands-know-oclif',
      severity: 'error',
      from: { path: '^src/(?!cli/)' },
      to: { path: 'node_modules/@oclif/' },
    },
    {
      name: 'only-net-opens-sockets',
      severity: 'error',
      from: { path: '^src/(?!net/)' },
      to: { path: '^(net|tls|node:net|node:tls)$' },
    },
    {
      name: 'pure-rooms-do-no-io',
      severity: 'error',
      from: {
        path: '^src/(errors|wire|datum|sql|catalog|topology|sharding|plan|routing|merge|auth|copy)/',
      },
      to: { path: '^(node:)?(net|tls|fs|fs/promises|child_process|http|worker_threads)$' },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
  },
}
