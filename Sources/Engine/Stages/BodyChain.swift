/// The stages of one direction, in the order in which content passes them.
final class BodyChain {
    private let stages: [any BodyStage]
    /// Some stage changes the content's length.
    let changesLength: Bool
    /// Some stage holds the head.
    let holdsHead: Bool
    /// Content that has come in and gone out.
    private var bytes: (taken: UInt64, given: UInt64) = (0, 0)

    /// nil: no stages, and so no chain.
    init?(_ stages: [any BodyStage]) {
        guard !stages.isEmpty else { return nil }
        self.stages = stages
        changesLength = stages.contains { $0.changesLength }
        holdsHead = stages.contains { $0.holdsHead }
    }

    /// Sends a part of the content through all stages; what comes out is given to `sink`, and is
    /// never empty.
    func push(
        _ content: UnsafeRawBufferPointer, owner: AnyObject, to sink: BodyOutlet
    ) throws(ExchangeFault) {
        bytes.taken += UInt64(content.count)
        try push(content, owner: owner, from: 0, to: sink)
    }

    /// Ends the content: each stage in its turn, so that what one still gives out passes those
    /// behind it before they are finished.
    func finish(to sink: BodyOutlet) throws(ExchangeFault) {
        for index in stages.indices {
            try stages[index].finish { content, owner throws(ExchangeFault) in
                try push(content, owner: owner, from: index + 1, to: sink)
            }
        }
        assert(
            changesLength || bytes.taken == bytes.given, "a stage has not kept to its length")
    }

    private func push(
        _ content: UnsafeRawBufferPointer, owner: AnyObject, from index: Int, to sink: BodyOutlet
    ) throws(ExchangeFault) {
        guard content.count > 0 else { return }
        guard index < stages.count else {
            bytes.given += UInt64(content.count)
            return try sink(content, owner)
        }
        try stages[index].push(content, owner: owner) { content, owner throws(ExchangeFault) in
            try push(content, owner: owner, from: index + 1, to: sink)
        }
    }
}
