/// The index while the database passes from one process to another.
extension DiskIndex {
    /// Admits nothing from now on, while what is there can still be read.
    func handOver() {
        state.withLock { state in
            if state.phase == .ready { state.phase = .handedOver }
        }
    }

    /// The bodies that are read here at present: from now on no other is.
    func handBodiesOver() -> [Int64] {
        state.withLock { state in
            state.handedBodies = Set(state.pins.keys)
            return Array(state.pins.keys)
        }
    }

    /// Whether the database that was handed over is being opened again.
    var isTakingBack: Bool {
        get { state.withLock { $0.isTakingBack } }
        set { state.withLock { $0.isTakingBack = newValue } }
    }

    /// The largest id assigned so far.
    var lastID: Int64 { state.withLock { $0.nextID - 1 } }
}

extension DiskIndex.State {
    /// Records a change while the rows are not ours to change; what is read at present no longer
    /// has what was changed.
    mutating func noteChange(_ key: UnsafeRawBufferPointer, vary: [UInt8]?) {
        // What changes while it is handed over is in the log of changes.
        if phase != .handedOver || isTakingBack { journal.note(key, vary: vary, in: phase) }
        guard phase == .handedOver else { return }
        let keyHash = XXHash64.hash(key, seed: seed)
        if let vary {
            _ = remove(keyHash: keyHash, varyHash: DiskIndex.varyHash(vary, seed: seed))
        } else {
            _ = remove(keyHash: keyHash)
        }
    }
}
