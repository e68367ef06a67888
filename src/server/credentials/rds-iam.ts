/** Passwords for Amazon RDS by IAM: an address that is signed for a quarter of an hour, made here without asking anybody. */
import { RDS_TOKEN_SEC, rdsToken } from '../../auth/aws-signature.js'
import type { Clock } from '../../base/clock.js'
import { type Environment, findAwsKeys } from './aws-keys.js'
import type { CredentialProvider } from './kept-credentials.js'

export interface RdsPlace {
  readonly host: string
  readonly port: number
  readonly user: string
  /** That of the host's name, or of the environment, when absent. */
  readonly region?: string
}

export function rdsProvider(place: RdsPlace, env: Environment, clock: Clock): CredentialProvider {
  const region =
    place.region ?? regionOf(place.host) ?? env['AWS_REGION'] ?? env['AWS_DEFAULT_REGION']
  return {
    name: `RDS IAM for ${place.user}@${place.host}:${place.port}`,
    refreshPercent: 80,
    fetch: async () => {
      if (!region) throw new Error('the region is not known: set server_iam_region')
      const { keys, expiresAtMs = Number.POSITIVE_INFINITY } = await findAwsKeys(env, region)
      const nowMs = clock.nowMs()
      // A token does not outlive the keys that signed it.
      const lifeMs = Math.min(RDS_TOKEN_SEC * 1000, expiresAtMs - nowMs)
      if (lifeMs <= 0) throw new Error('the AWS keys have expired')
      return { password: rdsToken(place, keys, { region, at: new Date(nowMs) }), lifeMs }
    },
  }
}

/** `db.abc.eu-west-1.rds.amazonaws.com` */
export function regionOf(host: string): string | undefined {
  return /\.([a-z0-9-]+)\.rds\.amazonaws\.com(?:\.cn)?$/.exec(host)?.[1]
}
