import { homedir } from 'node:os'
import { join } from 'node:path'

/** Interpreter with the Python packages of the full run (`test/faults/requirements.txt`), which `.ci/install --full` installs. */
export const PYTHON = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'mooring-tests/python/bin/python')
