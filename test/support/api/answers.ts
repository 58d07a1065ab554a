export type Listener = 'shared' | 'dedicated'

export interface CallOptions {
  /**
   * Token of the caller. Default: a platform admin's, a new one for each call, since each has its own rate limit. Null: no token.
   */
  readonly token?: string | null | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** Body, sent as JSON; bytes are sent as they are. */
  readonly body?: unknown
  /** Listener that is called. Default: shared. */
  readonly on?: Listener
}

/** Calls the API. Each response is checked against the common form and the listener's OpenAPI document. */
export type Call = (method: string, path: string, options?: CallOptions) => Promise<Answer>

/** Body of a response: a success has `data`, an error `error`, and each test knows which one it expects. */
export interface Body {
  readonly msg: string
  readonly data: Data
  readonly error: {
    readonly code: string
    readonly details: readonly { readonly field: string; readonly message: string }[]
    readonly requestId: string
  }
}

/** Data of all calls; each call returns its part. */
export interface Data {
  readonly instance: Instance
  readonly instances: readonly Instance[]
  readonly extensions: readonly { readonly name: string; readonly version: string | null; readonly installed: boolean }[]
  readonly regions: readonly Region[]
  readonly metadata: {
    readonly plans: readonly { readonly id: string; readonly memoryMiB: number; readonly storageGiB: number }[]
    readonly billableItems: readonly { readonly id: string }[]
  }
  readonly usage: readonly UsageAnswer[]
  readonly metrics: MetricsAnswer
  readonly database: Database
  readonly databases: readonly Database[]
  readonly backups: readonly Backup[]
  readonly organization: Named
  readonly organizations: readonly Named[]
  readonly namespace: Named & { readonly quota?: Readonly<Record<string, { readonly used: number; readonly limit: number }>> }
  readonly namespaces: readonly Named[]
  readonly member: Member
  readonly members: readonly Member[]
  readonly apiToken: ApiToken
  readonly apiTokens: readonly ApiToken[]
  readonly tunnel: Tunnel
  readonly tunnels: readonly Tunnel[]
  readonly certificate: Certificate
  readonly history: readonly object[]
  /** Temporary password of a tunnel. */
  readonly password: { readonly id: string; readonly password: string; readonly expiresAt: string }
  readonly requests: readonly {
    readonly id: string
    readonly method: string
    readonly path: string
    readonly status: number
    readonly sourceIp: string
  }[]
  readonly connections: readonly {
    readonly clientIp: string
    readonly type: string
    readonly sessionId: string
    readonly authMethod: string | null
    readonly reason: string | null
  }[]
  readonly webhook: WebhookAnswer
  readonly webhooks: readonly WebhookAnswer[]
  readonly delivery: DeliveryAnswer
  readonly deliveries: readonly DeliveryAnswer[]
  readonly entries: readonly {
    readonly action: string
    readonly via: string
    readonly actor: { readonly name: string } | null
    readonly resource: { readonly kind: string; readonly id: string; readonly name: string; readonly hostname?: string }
    readonly changes: readonly { readonly path: string; readonly from: unknown; readonly to: unknown }[]
  }[]
  readonly connect: Readonly<Record<'ssh' | 'loop' | 'autossh' | 'systemd', string>> & { readonly knownHosts: readonly string[] }
  /** Decision of the edge about a hypothetical request. */
  readonly steps: readonly { readonly check: string; readonly verdict: string; readonly detail: string }[]
  readonly answer: { readonly status: number | null; readonly reason: string | null }
  readonly nextCursor: string | null
}

export interface Backup {
  readonly id: string
  readonly kind: string
  readonly status: string
  readonly sizeBytes: number
  readonly error: string | null
  readonly lastVerifiedRestore: string | null
}

export interface Tunnel {
  readonly id: string
  readonly name: string
  readonly hostname: string
  readonly url: string
  readonly directUrl: string
  readonly config: Readonly<Record<string, unknown>>
  readonly certificate: Certificate
  readonly endpoint: {
    readonly domain: string
    readonly sshHost: string
    readonly sshPort: number
    readonly httpPort: number
    readonly httpsPort: number
    readonly hostKeys: readonly string[]
  }
  readonly connected: boolean
  readonly sessions: number
  readonly sshCommand: string
  readonly createdAt: string
}

export interface WebhookAnswer {
  readonly id: string
  readonly url: string
  readonly events: readonly string[]
  readonly enabled: boolean
  readonly disabledReason: string | null
  readonly createdAt: string
  readonly secret?: string
}

export interface DeliveryAnswer {
  readonly id: string
  readonly eventId: string
  readonly type: string
  readonly attempt: number
  readonly status: string
  readonly requestedAt: string | null
  readonly responseStatus: number | null
  readonly durationMs: number | null
  readonly responseBody: string | null
  readonly error: string | null
  readonly nextAttemptAt: string | null
}

interface Certificate {
  readonly status: string
  readonly domain: string
  readonly obtainedAt: string
  readonly expiresAt: string
  readonly issuer: string | null
  readonly lastError: string | null
  readonly nextAttemptAt: string | null
}

export interface Instance {
  readonly id: string
  readonly name: string
  readonly user: string
  readonly password: string
  readonly isEnabled: boolean
  readonly identifier: string
  readonly host: string
  readonly port: number
  readonly region: string
  readonly createdAt: string
  readonly motor: string
  readonly engineVersion: string
  readonly expiresAt: string | null
  readonly uri: string
  readonly tls: { readonly required: boolean; readonly ca: string | null }
  readonly statusReason: string | null
  readonly statusCode: string | null
}

export interface UsageAnswer {
  readonly item: string
  readonly unit: string
  readonly quantity: string
  readonly from: string
  readonly to: string
}

export interface SampleAnswer {
  readonly at: string
  readonly connections: number
  readonly sizeBytes: number
  readonly transactionsPerSecond: number | null
  readonly cacheHitRatio: number | null
  readonly slowStatements: number | null
  readonly backupAgeSeconds: number | null
}

export interface MetricsAnswer {
  readonly monitoring: boolean
  readonly from: string
  readonly to: string
  readonly latest: SampleAnswer | null
  readonly series: readonly SampleAnswer[]
}

export interface Database {
  readonly id: string
  readonly name: string
  readonly organization: string
  readonly namespace: string
  readonly engine: string
  readonly region: string
  readonly plan: string
  readonly status: string
  readonly statusReason: string | null
  readonly statusCode: string | null
  readonly firewallRules: readonly { readonly cidr: string; readonly description?: string }[] | null
  readonly privateNetwork: boolean
  readonly pointInTimeRecovery: { readonly retentionDays: number } | null
  readonly restoreWindow: { readonly earliest: string; readonly latest: string } | null
  readonly lastVerifiedRestore: string | null
  readonly sshTunnel: { readonly authMode: string; readonly authorizedKeys: readonly string[] } | null
  readonly monitoring: boolean
  readonly engineVersion: string | null
  readonly createdAt: string
  readonly createdBy: string | null
  readonly connection: {
    readonly host: string
    readonly port: number
    readonly user: string
    readonly password: string
    readonly database: string
    readonly uri: string
    readonly ca: string | null
    readonly internalHost: string | null
    readonly ssh?: { readonly command: string; readonly hostname: string; readonly knownHosts: readonly string[] }
  } | null
}

export interface Region {
  readonly id: string
  readonly name: string
  readonly regionId: number
  readonly motors: readonly { readonly id: string; readonly version: string; readonly supported: boolean }[]
  readonly tunnels: boolean
}

export interface Named {
  readonly slug: string
  readonly name: string
  readonly createdAt: string
}

export interface Member {
  readonly subject: string
  readonly role: string
}

export interface ApiToken {
  readonly id: string
  readonly name: string
  readonly role: string
  readonly expiresAt: string
  readonly createdAt: string
  readonly token: string
}

export interface Answer {
  readonly status: number
  readonly headers: NodeJS.Dict<string | string[]>
  readonly body: Body
}

/** Returns status and code of a response: `404 not_found`, `200 OK`. */
export const codeOf = ({ status, body }: Answer): string => `${status} ${status < 300 ? body.msg : body.error.code}`

/** Returns the fields that an error names, sorted. */
export const fieldsOf = ({ body }: Answer): readonly string[] => body.error.details.map(({ field }) => field).toSorted()
