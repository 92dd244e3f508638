/**
 * What a program of ours that a test starts gets of our environment: the way to others, and the code that was compiled before, which halves the time that it
 * takes to start.
 */
export function programEnv(): NodeJS.ProcessEnv {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  return { PATH, ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }) };
}
