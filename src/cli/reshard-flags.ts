/** Flags that the reshard commands share. */
import { Flags } from '@oclif/core'
import { configFlags } from './flags.js'

export const moveFlags = {
  config: configFlags.config,
  users: configFlags.users,
  from: Flags.string({
    description: 'database of the configuration to move from',
    required: true,
    helpValue: 'NAME',
  }),
  to: Flags.string({
    description: 'database of the configuration to move to',
    required: true,
    helpValue: 'NAME',
  }),
} as const
