/** Maximum length of a webhook's URL. */
export const WEBHOOK_URL_MAX = 2_048

/**
 * URL of a receiver: `http` or `https` and visible ASCII characters, without credentials, fragment and backslash. The pattern uses only what RE2
 * supports, because API servers evaluate it too.
 */
export const WEBHOOK_URL = /^https?:\/\/[!-"$-.0->A-[\]-~]+([/?][!-"$-[\]-~]*)?$/
export const WEBHOOK_URL_RULE =
  'must be a URL such as https://example.com/hook: http or https, ASCII characters, without user name, password and fragment'

/** Rule of a URL's host and port; `cel` is the rule of a TunnelWebhook's spec. */
export const WEBHOOK_PORT_RULE = {
  message: 'must have a valid host, and port 80, 443, or one from 1024 to 65535',
  cel: "isURL(self.url) && url(self.url).getHostname() != '' && (url(self.url).getPort() in ['', '80', '443'] || int(url(self.url).getPort()) >= 1024)",
  holds: hasAllowedPort,
} as const

const LOWEST_FREE_PORT = 1_024

/** Whether a URL parses and has an allowed port. Servers below port 1024 speak other protocols: mail, SSH, directories. */
function hasAllowedPort(text: string): boolean {
  const url = URL.parse(text)
  if (!url || url.hostname === '') return false
  return ['', '80', '443'].includes(url.port) || Number(url.port) >= LOWEST_FREE_PORT
}

/** Returns scheme, host and port of a URL, which are no secret; the empty text for an invalid URL. Pure. */
export const originOf = (text: string): string => URL.parse(text)?.origin ?? ''

/** Whether a text is a URL that webhooks may have. Pure. */
export const isWebhookUrl = (text: string): boolean =>
  text.length <= WEBHOOK_URL_MAX && WEBHOOK_URL.test(text) && hasAllowedPort(text)
