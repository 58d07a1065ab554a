import { z } from 'zod'

/** Schema of a map with at most `maxEntries` entries. zod has no such bound: `refine` checks it, `meta` puts it into the generated schema. */
export function boundedMap<V extends z.ZodType>(key: z.ZodString, value: V, maxEntries: number): z.ZodRecord<z.ZodString, V> {
  return z
    .record(key, value)
    .refine((map) => Object.keys(map).length <= maxEntries, { error: `at most ${maxEntries} entries` })
    .meta({ maxProperties: maxEntries })
}
