import { z } from 'zod'
import { jsonOf } from '../../shared/json.ts'
import { strictDeep } from '../../shared/strict.ts'

/** Parts that several settings have. Quantities may be numbers in a chart's values. */
export const texts = z.record(z.string(), z.string())
const quantities = z.record(z.string(), z.union([z.string(), z.number()]))
export const PodResources = z.object({ requests: quantities.optional(), limits: quantities.optional() }).default({})
export type PodResources = z.output<typeof PodResources>
export const PullPolicy = z.enum(['Always', 'IfNotPresent', 'Never']).default('IfNotPresent')
export const PodLogLevel = z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info')

/** Returns the rule of a setting that the chart makes of one of its values: JSON in one line, without undeclared fields. */
export function chartSetting<S extends z.ZodType>(schema: S, value: string) {
  return z.string().transform((text, context): z.output<S> => {
    const parsed = strictDeep(schema).safeParse(jsonOf(text))
    if (parsed.success) return parsed.data
    const why = parsed.error.issues.slice(0, 1).flatMap(({ path, message }) => [...path, message])
    context.addIssue({ code: 'custom', message: `a JSON object as the chart makes it of its value ${value} (${why.join(' ')})` })
    return z.NEVER
  })
}
