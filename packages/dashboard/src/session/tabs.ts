/** Messages between the tabs of a browser, which share a session. */
type Message = 'signed-in' | 'signed-out';

const channel = new BroadcastChannel('latchkey-session');

export const tellOtherTabs = (message: Message) => channel.postMessage(message);

export function subscribeToTabs(listener: (message: Message) => void): () => void {
  const onMessage = ({ data }: MessageEvent<Message>) => listener(data);
  channel.addEventListener('message', onMessage);
  return () => channel.removeEventListener('message', onMessage);
}
