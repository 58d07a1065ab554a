import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { BUILT } from './dashboard-files.ts'

/**
 * Program that bundles the folder `dashboard/` for browsers, in less than a second. embedded/install.sh and the Dockerfile run it. The page is written
 * last, so that its presence marks a finished build.
 */
const SOURCES = fileURLToPath(new URL('../../dashboard/', import.meta.url))

await rm(BUILT, { recursive: true, force: true })
const { metafile } = await build({
  entryPoints: { main: join(SOURCES, 'main.tsx') },
  outdir: join(BUILT, 'assets'),
  entryNames: '[name]-[hash]',
  assetNames: '[name]-[hash]',
  bundle: true,
  minify: true,
  metafile: true,
  format: 'esm',
  target: 'es2023',
  legalComments: 'none',
  logLevel: 'warning',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  loader: { '.svg': 'file' },
})

const names = Object.keys(metafile.outputs).map((path) => basename(path))
const icon = await readFile(join(SOURCES, 'icon.svg'))
await mkdir(join(BUILT, 'assets'), { recursive: true })
await writeFile(join(BUILT, 'assets/icon.svg'), icon)
const page = await readFile(join(SOURCES, 'index.html'), 'utf8')
const nameOf = (ending: string): string => names.find((name) => name.endsWith(ending)) ?? ''
await writeFile(join(BUILT, 'index.html'), page.replaceAll('{{script}}', nameOf('.js')).replaceAll('{{style}}', nameOf('.css')))
