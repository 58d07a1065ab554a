import { z } from 'zod'
import type { DatabaseServer } from '../../../../crds/database-server.ts'
import { FAMILIES, partsOf } from '../../../../crds/motor.ts'
import { chartSetting, PodResources, PullPolicy, texts } from '../../../kubernetes/chart-setting.ts'
import { EXPORTERS, type ExporterProgram } from './programs.ts'

/** Settings of the exporters beside servers, which the chart makes of its value `monitoring`. */
const Settings = z.object({
  /** Image by engine family; empty or absent: servers of the family have no exporter. */
  images: z.partialRecord(z.enum(FAMILIES), z.string()).default({}),
  pullPolicy: PullPolicy,
  resources: PodResources,
  /** Namespace and labels of the pods that may read the metrics. */
  prometheus: z.object({ namespace: z.string().min(1), podLabels: texts.default({}) }),
  /** PodMonitor of the exporters, where the cluster knows that kind. */
  podMonitor: z.object({ enabled: z.boolean(), interval: z.string().default('30s'), labels: texts.default({}) }),
})
export type ExporterPodSettings = z.output<typeof Settings>

/** Rule of the setting. */
export const ExporterPods = chartSetting(Settings, 'monitoring')

/** Exporter beside one server. */
export interface DesiredExporter {
  readonly image: string
  readonly program: ExporterProgram
  readonly settings: ExporterPodSettings
}

/** Returns the exporter of a server; undefined for a server without monitoring, or whose family has no image. Pure. */
export function exporterOf({ spec }: DatabaseServer, settings: ExporterPodSettings | undefined): DesiredExporter | undefined {
  const { family } = partsOf(spec.motor)
  const image = settings?.images[family] ?? ''
  if (!settings || image === '' || !spec.monitoring || spec.tenancy !== 'dedicated') return undefined
  return { image, program: EXPORTERS[family], settings }
}
