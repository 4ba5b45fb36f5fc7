// The memory of heads that have not arrived whole, and of TLS handshakes that are not done: one
// budget for the process. Clients that begin either and do not finish cost no more than that.
extension Worker {
    /// An unfinished head takes up a buffer of so many bytes. When the budget is full the oldest of
    /// this worker's unfinished requests is refused, which may be this one; but a worker keeps its
    /// share of the budget, or those of another one could leave its clients nothing.
    func holdsHead(_ client: ClientConnection, bytes: Int) {
        let change = bytes - client.heldHeadBytes
        guard change != 0 else { return }
        if client.heldHeadBytes == 0 {
            client.stalledSince = loop.now
            unfinishedHeads.append(client)
        }
        client.heldHeadBytes = bytes
        var held = countHeadBytes(change)
        let limit = policy.configuration.limits.bufferBytes
        while held > limit, heldHeadBytes > limit / shared.workerCount,
            let oldest = unfinishedHeads.first
        {
            metrics.add(.clientHeadsEvicted)
            held -= oldest.heldHeadBytes
            oldest.givesUpHead()
        }
    }

    /// The head has arrived, or never will.
    func releasesHead(_ client: ClientConnection) {
        guard client.heldHeadBytes > 0 else { return }
        _ = countHeadBytes(-client.heldHeadBytes)
        client.heldHeadBytes = 0
        unfinishedHeads.remove(client)
    }

    /// How many bytes all workers' unfinished heads take up now.
    private func countHeadBytes(_ change: Int) -> Int {
        heldHeadBytes += change
        metrics.adjust(.headBufferBytes, by: Int64(change))
        return shared.headBytes.add(change, ordering: .relaxed).newValue
    }
}
