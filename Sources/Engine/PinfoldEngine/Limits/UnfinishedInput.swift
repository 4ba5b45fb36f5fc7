/// What a client has begun and not finished: a request's head, or content that is taken in before
/// there is a connection for it, or a TLS handshake.
package protocol UnfinishedInput: AnyObject {
    /// What its client has open; nil: it is the administration's.
    var account: ClientAccount? { get }
    /// What it takes up of the memory for such; 0: it is finished.
    var unfinishedBytes: Int { get set }
    /// Since when, in the loop's milliseconds.
    var stalledSince: Int64 { get set }
    /// It makes way for others: there is no more memory.
    func giveUp()
}

// The memory of what clients have not finished: one budget for the process. Clients that begin
// something and do not finish it cost no more than that, and none of them has more than half of it,
// but for what each worker keeps of its own part of the budget.
extension Environment {
    /// What one client may have of the budget.
    private static func clientShare(of limit: Int) -> Int { limit / 2 }

    /// Something unfinished takes up so many bytes.
    ///
    /// When its client has its share, the oldest of that client on this worker makes way, which may
    /// be this one. When the budget is used up, it is the oldest of the client that holds the most
    /// on this worker. But a worker keeps its part of the budget, and of each client's share, or
    /// what another one holds could leave its clients nothing.
    package func hold(_ input: any UnfinishedInput, bytes: Int) {
        let change = bytes - input.unfinishedBytes
        guard change != 0 else { return }
        if input.unfinishedBytes == 0 {
            input.stalledSince = loop.now
            unfinished.insert(
                input, for: ObjectIdentifier(input), of: input.account?.network, weight: bytes)
        } else {
            unfinished.setWeight(bytes, of: ObjectIdentifier(input))
        }
        input.unfinishedBytes = bytes
        countUnfinished(change, of: input.account)
        let limit = policy.configuration.limits.bufferBytes
        if let account = input.account { keepShare(of: account, Self.clientShare(of: limit)) }
        while shared.unfinishedBytes.load(ordering: .relaxed) > limit,
            unfinished.weight > limit / shared.workerCount, let oldest = unfinished.next()
        {
            evict(oldest)
        }
    }

    /// The oldest of the client that holds the most on this worker.
    package var oldestUnfinished: (any UnfinishedInput)? { unfinished.next(ofClients: true) }

    private func keepShare(of account: ClientAccount, _ limit: Int) {
        while account.unfinishedBytes.load(ordering: .relaxed) > limit,
            unfinished.weight(of: account.network) > limit / shared.workerCount,
            let oldest = unfinished.next(of: account.network)
        {
            evict(oldest)
        }
    }

    private func evict(_ input: any UnfinishedInput) {
        metrics.add(.clientHeadsEvicted)
        release(input)
        input.giveUp()
    }

    /// It is finished, or never will be.
    package func release(_ input: any UnfinishedInput) {
        guard input.unfinishedBytes > 0 else { return }
        countUnfinished(-input.unfinishedBytes, of: input.account)
        input.unfinishedBytes = 0
        unfinished.remove(ObjectIdentifier(input))
    }

    private func countUnfinished(_ change: Int, of account: ClientAccount?) {
        metrics.adjust(.headBufferBytes, by: Int64(change))
        shared.unfinishedBytes.add(change, ordering: .relaxed)
        account?.unfinishedBytes.add(change, ordering: .relaxed)
    }
}
