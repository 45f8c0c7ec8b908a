/* Browsers start no worker on a page that was opened from disk. There the search runs in a hidden
   frame instead, which is an ordinary document with the same messages. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inner = frame.contentWindow;
      this.waiting = [];
      this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inner.importScripts = (...files) =>
        files.reduce((done, file) => done.then(() => this.load(file)), Promise.resolve());
      this.load(String(url)).then(() => {
        const sent = this.waiting;
        this.waiting = null;
        sent.forEach((data) => this.postMessage(data));
      });
    }
    load(url) {
      return new Promise((done, failed) => {
        const script = this.inner.document.createElement("script");
        Object.assign(script, { src: url, onload: done, onerror: failed });
        this.inner.document.body.appendChild(script);
      });
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.inner.dispatchEvent(new MessageEvent("message", { data }));
    }
    terminate() {
      this.inner.frameElement.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
