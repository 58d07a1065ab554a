import { z } from 'zod'
import { DNS_NAME, DNS_SERVER, TSIG_ALGORITHMS } from '../../crds/parts/acme-settings.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { TSIG_ENTRY, tsigSecretIn } from '../../operator/acme/dns/records.ts'
import { keepSecret, keptSecret } from '../../operator/installation/kept-secret.ts'
import { oneOf, Path } from '../../process/setting-rules.ts'
import { setting, type SettingsOf, withDefault } from '../../process/settings.ts'
import { MooringError } from '../../shared/errors.ts'
import type { Store } from '../../store/port.ts'
import { ACME_FILE_UNUSABLE, fileOf } from './acme-files.ts'

const Server = z.string().max(262).regex(DNS_SERVER, 'a host name or an IP address, optionally with a port')
const Name = z.string().max(254).regex(DNS_NAME, 'a domain name')

/** Settings of the challenge dns-01 in embedded mode (docs/certificates.md). */
export const ACME_DNS_SETTINGS = {
  acmeDnsServer: setting(Server, '<host:port>', 'primary DNS server that takes dynamic updates, for --acme-challenge dns-01'),
  acmeDnsZone: setting(Name, '<name>', 'zone of the TXT record; default: the server is asked'),
  acmeTsigKeyName: setting(Name, '<name>', 'name of the TSIG key of the updates'),
  acmeTsigKeyFile: setting(Path, '<path>', 'file with that key in base64, or a key file of BIND'),
  acmeTsigAlgorithm: withDefault(oneOf(TSIG_ALGORITHMS), '<name>', ['hmac-sha256', 'algorithm of that key']),
} as const

type DnsFlags = SettingsOf<typeof ACME_DNS_SETTINGS> & { readonly acmeChallenge: string }

/** Conflicts between settings of dns-01, a sentence each. */
export function acmeDnsConflicts({ acmeChallenge, ...flags }: DnsFlags): readonly string[] {
  const { acmeDnsServer, acmeTsigKeyName, acmeTsigKeyFile, acmeDnsZone } = flags
  const required = [acmeDnsServer, acmeTsigKeyName, acmeTsigKeyFile]
  if (acmeChallenge === 'dns-01') {
    if (required.every((value) => value !== undefined)) return []
    return ['mooring: --acme-challenge dns-01 needs --acme-dns-server, --acme-tsig-key-name and --acme-tsig-key-file.']
  }
  if ([...required, acmeDnsZone].every((value) => value === undefined)) return []
  return ['mooring: --acme-dns-… and --acme-tsig-… are settings of --acme-challenge dns-01.']
}

/** Name of the Secret with the key of `--acme-tsig-key-file`. */
const TSIG_SECRET = 'acme-tsig-key'

/**
 * Returns the settings of DNS updates, after storing their key.
 * @throws MooringError `acme_file_unusable`
 */
export async function dnsFields(store: Store, flags: DnsFlags): Promise<NonNullable<TunnelEndpoint['spec']['acme']>['dns']> {
  const { acmeDnsServer: server, acmeTsigKeyName: tsigKeyName, acmeTsigKeyFile: path, acmeDnsZone: zone } = flags
  if (flags.acmeChallenge !== 'dns-01' || server === undefined || tsigKeyName === undefined || path === undefined)
    return undefined
  const key = await fileOf('--acme-tsig-key-file', path)
  if (!tsigSecretIn(key)) {
    const why = `--acme-tsig-key-file must have a key in base64, or be a key file of BIND; ${JSON.stringify(path)} is neither.`
    throw new MooringError(ACME_FILE_UNUSABLE, why)
  }
  await keptSecret(store, TSIG_SECRET, async () => ({ [TSIG_ENTRY]: key }))
  await keepSecret(store, TSIG_SECRET, { [TSIG_ENTRY]: key })
  return { server, zone, tsigKeyName, tsigAlgorithm: flags.acmeTsigAlgorithm, tsigSecretName: TSIG_SECRET }
}
