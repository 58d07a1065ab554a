import { z } from 'zod'
import { ADDRESS_RULE } from '../../../../crds/formats/address-list.ts'
import { chartSetting, PodLogLevel, PodResources, PullPolicy, texts } from '../../../kubernetes/chart-setting.ts'

/** Addresses that agents may connect to. */
const Egress = z.object({
  cidr: z.string().refine(ADDRESS_RULE.holds, { error: ({ input }) => ADDRESS_RULE.messageOf(String(input)) }),
  port: z.int().min(1).max(65_535),
})

/** How servers are backed up: the chart's value `backups`. */
const Settings = z
  .object({
    /** `s3://bucket/prefix`; empty with a volume. */
    url: z.string().default(''),
    /** Name of the PersistentVolumeClaim in mooring-shared with the backups; empty with S3. */
    claim: z.string().default(''),
    /** Image of Mooring. */
    image: z.string().min(1),
    pullPolicy: PullPolicy,
    logLevel: PodLogLevel,
    /** Name of the Secret in mooring-shared with the environment of the AWS SDK; empty: none. */
    secretName: z.string().default(''),
    /** Further environment of the AWS SDK, such as `AWS_REGION` and `AWS_ENDPOINT_URL`. */
    env: texts.default({}),
    egress: z.array(Egress).default([]),
    /** Whether agents may resolve names at the cluster's DNS. */
    dns: z.boolean().default(true),
    resources: PodResources,
    /** Heap of Node.js in MiB. */
    heapMiB: z.int().min(32).default(128),
  })
  .refine(({ url, claim }) => (url === '') !== (claim === ''), 'exactly one of url and claim must be given')
export type BackupPodSettings = z.output<typeof Settings>

/** Rule of the setting. */
export const BackupPods = chartSetting(Settings, 'backups')

/** Mount path of the volume with the backups, in the pods of servers and of the operator. */
export const REPOSITORY_MOUNT = '/var/lib/mooring/backups'

/** Location of the repository for `openRepository`. */
export const repositoryUrl = ({ url }: Pick<BackupPodSettings, 'url'>): string => (url === '' ? REPOSITORY_MOUNT : url)
