import { useState } from 'preact/hooks'
import { caFileOf, type ConnectionParts, connectionSamples } from '../connection-samples.ts'
import { Code } from './basics.tsx'

/** Code that connects to a database, for the clients of its engine. */
export function Samples({ parts }: { parts: ConnectionParts }) {
  const samples = connectionSamples(parts)
  const [chosen, setChosen] = useState(samples[0]?.name)
  const sample = samples.find(({ name }) => name === chosen) ?? samples[0]
  const caFile = caFileOf(parts.uri)
  if (!sample) return null
  return (
    <div class="samples">
      <div class="switcher" role="group" aria-label="Client">
        {samples.map(({ name }) => (
          <button key={name} type="button" aria-pressed={name === sample.name} onClick={() => setChosen(name)}>
            {name}
          </button>
        ))}
      </div>
      {caFile !== undefined && (
        <p class="sub">
          The certificate authority below is read from the file <span class="mono break">{caFile}</span>.
        </p>
      )}
      <Code label={`Connect with ${sample.name}`} text={sample.text} />
    </div>
  )
}
