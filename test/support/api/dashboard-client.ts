import { expect } from 'vitest'
import { createHttpsClient, type Incoming } from './https-client.ts'

/** Page of the dashboard, without a browser: it sends the headers of one and keeps the session cookie. */
export interface DashboardClient extends Disposable {
  /** `Set-Cookie` of the last answer that had one. */
  readonly setCookie: string
  send(method: string, path: string, options?: SendOptions): Promise<Incoming>
  /** Signs in, by a token or the code of a link. */
  signIn(secret: object): Promise<Incoming>
}

export interface SendOptions {
  readonly body?: object
  /** Replace or remove (`undefined`) headers that the page would send. */
  readonly headers?: Readonly<Record<string, string | undefined>>
}

/** Creates a page of the dashboard at `url`. `cookie` is the session of an earlier page. */
export function createDashboardClient({ url, ca, cookie }: { url: string; ca: string; cookie?: string }): DashboardClient {
  const client = createHttpsClient(ca)
  let setCookie = cookie ?? ''

  async function send(method: string, path: string, { body, headers = {} }: SendOptions = {}): Promise<Incoming> {
    const own = {
      Origin: url,
      'Sec-Fetch-Site': 'same-origin',
      ...(setCookie !== '' && { Cookie: setCookie.replace(/;.*/, '') }),
    }
    const type = body && { 'Content-Type': 'application/json' }
    const merged: Readonly<Record<string, string | undefined>> = { ...own, ...type, ...headers }
    const all = Object.entries(merged).filter((pair): pair is [string, string] => pair[1] !== undefined)
    const answer = await client.send(url + path, { method, headers: Object.fromEntries(all), body: body && JSON.stringify(body) })
    const { 'set-cookie': given } = answer.headers
    setCookie = (Array.isArray(given) ? given[0] : given) ?? setCookie
    return answer
  }

  return {
    send,
    signIn: (secret) => send('POST', '/dashboard/session', { body: secret }),
    get setCookie() {
      return setCookie
    },
    [Symbol.dispose]: () => client[Symbol.dispose](),
  }
}

/** Expects an error of the API. */
export function expectRejection({ status, text }: Incoming, code: string): void {
  const { error } = JSON.parse(text) as { readonly error?: { readonly code: string } }
  expect(`${status} ${error?.code ?? 'OK'}`).toBe(code)
}
