/// Input that a client has begun and not finished: a request's head, content that is collected
/// before there is a connection for it, or a TLS handshake.
package protocol UnfinishedInput: AnyObject {
    /// The client's account; `nil` for a client of the administration.
    var account: ClientAccount? { get }
    /// How much of the memory for such input it uses; 0 once it is finished.
    var unfinishedBytes: Int { get set }
    /// Since when it is unfinished, in the loop's milliseconds.
    var stalledSince: Int64 { get set }
    /// Gives up in favour of others, because there is no more memory.
    func giveUp()
}

// The memory for input that clients have not finished: one budget for the process. Clients that
// begin something and do not finish it cost no more than that, and none of them gets more than half
// of it, apart from what each worker reserves of its own part of the budget.
extension Environment {
    /// The part of the budget that one client may use.
    private static func clientShare(of limit: Int) -> Int { limit / 2 }

    /// Sets how many bytes an unfinished input uses.
    ///
    /// If its client exceeds its share, the oldest input of that client on this worker is evicted,
    /// which may be this one. If the budget is used up, it is the oldest of the client that uses
    /// the most on this worker. But each worker keeps its part of the budget and of each client's
    /// share: otherwise what another worker holds could leave its clients nothing.
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

    /// The oldest input of the client that uses the most on this worker.
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

    /// Releases an input that is finished or never will be.
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
