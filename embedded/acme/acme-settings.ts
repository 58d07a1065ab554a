import { z } from 'zod'
import {
  ACME_CHALLENGES,
  ACME_TOKEN,
  DIRECTORIES,
  DIRECTORY_URL,
  EMAIL,
  LETS_ENCRYPT,
  NAMESERVER,
} from '../../crds/parts/acme-settings.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { keepSecret, keptSecret } from '../../operator/installation/kept-secret.ts'
import { oneOf, Path, Switch, Text, whole } from '../../process/setting-rules.ts'
import { setting, type SettingsOf, withDefault } from '../../process/settings.ts'
import type { Store } from '../../store/port.ts'
import { ACME_DNS_SETTINGS, acmeDnsConflicts, dnsFields } from './acme-dns-settings.ts'
import { fileOf } from './acme-files.ts'

const Email = z.string().regex(EMAIL, 'an e-mail address')
const Directory = z
  .string()
  .transform((text) => DIRECTORIES.get(text) ?? text)
  .pipe(z.string().max(1024).regex(DIRECTORY_URL, 'letsencrypt, staging, or an https URL without user, query and fragment'))
const NAMESERVER_RULE = 'IP addresses of DNS servers, optionally with a port, with commas or blanks between them'
const Nameservers = z
  .string()
  .transform((text) => text.split(/[\s,]+/).filter((item) => item !== ''))
  .refine((all) => all.length <= 8 && all.every((item) => NAMESERVER.test(item)), NAMESERVER_RULE)

/** Settings of certificates by ACME in embedded mode (docs/certificates.md). */
export const ACME_SETTINGS = {
  issuerAcme: withDefault(Switch, '[on|off]', ['off', 'obtain certificates of tunnels from a public CA, by ACME']),
  acmeDirectory: withDefault(Directory, '<url>', [
    LETS_ENCRYPT,
    'directory of the CA, or staging: that of Let’s Encrypt for trials; default: Let’s Encrypt',
  ]),
  acmeEmail: setting(Email, '<address>', 'address for messages of the CA'),
  acmeAgreeTerms: withDefault(Switch, '[on|off]', ['off', 'accept the terms of service of the CA; --issuer-acme needs it']),
  acmeCa: setting(
    Path,
    '<path>',
    'PEM file with the roots that the directory’s TLS certificate is verified with, beside the public ones',
  ),
  acmeChallenge: withDefault(oneOf(ACME_CHALLENGES), '<type>', [
    'http-01',
    'how the CA verifies a name; http-01: by port 80 of each tunnel’s host, which must lead to --http-port; tls-alpn-01: by port 443, which must lead to --https-port; dns-01: by a TXT record, with one wildcard certificate for all tunnels; dns-persist-01: by a TXT record that you create once',
  ]),
  acmeCertificates: setting(
    oneOf(['perTunnel', 'wildcard']),
    '<kind>',
    'one certificate for each tunnel, or one wildcard certificate for all; default: wildcard with dns-01 and dns-persist-01, else perTunnel',
  ),
  ...ACME_DNS_SETTINGS,
  acmeProfile: setting(
    z.string().regex(ACME_TOKEN, 'the name of a profile'),
    '<name>',
    'profile of the certificates; default: the CA’s',
  ),
  acmeEabKeyId: setting(Text, '<id>', 'id of the key of an external account, for CAs that need one'),
  acmeEabKeyFile: setting(Path, '<path>', 'file with that key in base64url'),
  acmeAccountKeyVersion: withDefault(whole(1, 1_000_000), '<n>', ['1', 'version of the account’s key; add 1 for a new key']),
  acmeRevokeOnDelete: withDefault(Switch, '[on|off]', ['off', 'revoke the certificate of a tunnel when it is deleted']),
  acmeNameservers: withDefault(Nameservers, '<addresses>', [
    '',
    'DNS servers for the check that precedes an order; default: those of this machine',
  ]),
  acmeCheck: withDefault(Switch, '[on|off]', ['on', 'fetch each challenge from here before the CA is asked to']),
  acmeWeeklyBudget: setting(
    whole(1, 100_000),
    '<n>',
    'first certificates within 7 days per registered domain; default: 40 at Let’s Encrypt, 100000 at other CAs',
  ),
} as const

export type AcmeFlags = SettingsOf<typeof ACME_SETTINGS>

/** Conflicts between settings of ACME, a sentence each. */
export function acmeConflicts(settings: AcmeFlags): readonly string[] {
  if (!settings.issuerAcme) return []
  const conflicts: string[] = []
  if (!settings.acmeAgreeTerms) {
    conflicts.push('mooring: --issuer-acme needs --acme-agree-terms, which accepts the terms of service of the CA.')
  }
  if ((settings.acmeEabKeyId === undefined) !== (settings.acmeEabKeyFile === undefined)) {
    conflicts.push('mooring: --acme-eab-key-id and --acme-eab-key-file need each other.')
  }
  const { acmeChallenge: challenge, acmeCertificates: certificates } = settings
  if (challenge !== 'dns-persist-01' && certificates !== undefined && certificates !== certificatesOf(challenge)) {
    conflicts.push(`mooring: --acme-challenge ${challenge} cannot be used with --acme-certificates ${certificates}.`)
  }
  return [...conflicts, ...acmeDnsConflicts(settings)]
}

const certificatesOf = (challenge: AcmeFlags['acmeChallenge']): 'perTunnel' | 'wildcard' =>
  challenge === 'dns-01' || challenge === 'dns-persist-01' ? 'wildcard' : 'perTunnel'

/** Name of the Secret with the key of `--acme-eab-key-file`. */
const EXTERNAL_ACCOUNT_SECRET = 'acme-external-account'

/**
 * Returns the issuer of the endpoint of this process, after storing the key of an external account.
 * @throws MooringError `acme_file_unusable`
 */
export async function issuerFields(
  store: Store,
  settings: AcmeFlags,
): Promise<Pick<TunnelEndpoint['spec'], 'issuer' | 'certificates' | 'acme'>> {
  if (!settings.issuerAcme) return { issuer: 'local', certificates: 'perTunnel' }
  const { acmeEmail: email, acmeProfile: profile, acmeWeeklyBudget: weeklyBudget } = settings
  const caBundle = settings.acmeCa === undefined ? undefined : await fileOf('--acme-ca', settings.acmeCa)
  const externalAccount = await externalAccountOf(store, settings)
  const dns = await dnsFields(store, settings)
  return {
    issuer: 'acme',
    certificates: settings.acmeCertificates ?? certificatesOf(settings.acmeChallenge),
    acme: {
      directoryUrl: settings.acmeDirectory,
      agreeToTerms: settings.acmeAgreeTerms,
      challenge: settings.acmeChallenge,
      accountKeyVersion: settings.acmeAccountKeyVersion,
      revokeOnDelete: settings.acmeRevokeOnDelete,
      nameservers: settings.acmeNameservers,
      check: settings.acmeCheck,
      email,
      profile,
      caBundle,
      externalAccount,
      weeklyBudget,
      dns,
    },
  }
}

async function externalAccountOf(store: Store, { acmeEabKeyId: keyId, acmeEabKeyFile: path }: AcmeFlags) {
  if (keyId === undefined || path === undefined) return undefined
  const key = (await fileOf('--acme-eab-key-file', path)).trim()
  await keptSecret(store, EXTERNAL_ACCOUNT_SECRET, async () => ({ 'hmac-key': key }))
  await keepSecret(store, EXTERNAL_ACCOUNT_SECRET, { 'hmac-key': key })
  return { keyId, secretName: EXTERNAL_ACCOUNT_SECRET }
}
