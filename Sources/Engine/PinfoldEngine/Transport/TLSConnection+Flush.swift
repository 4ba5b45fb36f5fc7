import EventLoop
import PinfoldTLS

// Writing a queue through a TLS session.
//
// After a write that was stopped by a full socket, the next one must begin with the same bytes and
// must not be shorter than the record in progress (`TLSConnection.write`). Each write here begins
// at the queue's front and takes as much as fits into a record, or everything; so this is
// guaranteed as long as nothing is withdrawn while `isWithinRecord`.
extension TLSConnection {
    /// Writes until the queue is empty, the socket is full, or the turn's budget is spent. At least
    /// one write is made, because reading may already have spent the budget.
    package func flush(
        _ output: inout OutputQueue, on loop: EventLoop, spending budget: inout TurnBudget
    ) -> OutputQueue.Flush {
        budget.renew(loop)
        var remaining = OutputQueue.bytesPerFlush
        while let run = output.front {
            guard remaining > 0 else { return .turnIsOver }
            let (result, wanted) = write(run, of: output, atMost: remaining, from: loop.buffers)
            switch result {
            case .bytes(let count):
                output.consume(count)
                remaining -= count
                budget.spend(.systemCall)
                budget.spend(.record, times: count / Self.recordBytes + 1)
                budget.spend(bytes: count)
                if count < wanted { return .blocked }
                if budget.isSpent, !output.isEmpty { return .turnIsOver }
            case .wantRead, .wantWrite: return .blocked
            case .failed: return .failed(.connectionReset)
            case nil: return .failed(.inputOutput)
            }
        }
        return .drained
    }

    /// The maximum content of one record (RFC 8446 §5.1).
    private static let recordBytes = 16 * 1024

    /// Makes one write from the queue's front; returns `nil` if a file is shorter than expected.
    private func write(
        _ run: OutputQueue.Run, of output: borrowing OutputQueue, atMost limit: Int,
        from buffers: BufferPool
    ) -> (result: TLSWriteResult?, wanted: Int) {
        guard let memory = run.memory else {
            var buffer: Buffer? = buffers.takeLarge()
            defer { Buffer.release(&buffer) }
            guard let room = buffer?.memory else { return (nil, 0) }
            let part = UnsafeMutableRawBufferPointer(
                rebasing: room.prefix(min(run.count, max(limit, Self.recordBytes))))
            guard Transfers.read(file: run.file, offset: run.offset, into: part) else {
                return (nil, 0)
            }
            return (write(UnsafeRawBufferPointer(part)), part.count)
        }
        if run.count < Self.recordBytes, !run.isLast {
            // A head and a short body become one record, with one call.
            var buffer: Buffer? = buffers.takeSmall()
            defer { Buffer.release(&buffer) }
            guard let room = buffer?.memory else { return (nil, 0) }
            let gathered = UnsafeRawBufferPointer(
                rebasing: room.prefix(output.copyFront(into: room)))
            return (write(gathered), gathered.count)
        }
        let bytes = UnsafeRawBufferPointer(
            start: memory, count: min(run.count, max(limit, Self.recordBytes)))
        return (write(bytes), bytes.count)
    }
}
