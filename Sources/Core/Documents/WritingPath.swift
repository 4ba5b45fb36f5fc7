/// The current position of a writer in a value.
struct WritingPath: CustomStringConvertible {
    private struct Level {
        /// Where its key begins.
        var start: Int
        /// The index, for an array; `nil` in a dictionary.
        var index: Int?
    }

    private var levels: [Level] = []
    /// The keys of all levels, one after another.
    private var keys: [UInt8] = []

    mutating func begin(isArray: Bool) {
        levels.append(Level(start: keys.count, index: isArray ? -1 : nil))
    }

    mutating func end() {
        guard let level = levels.popLast() else { return }
        keys.removeLast(keys.count - level.start)
    }

    mutating func setKey(_ key: UnsafeRawBufferPointer) {
        guard let level = levels.last else { return }
        keys.removeLast(keys.count - level.start)
        keys.append(contentsOf: key)
    }

    mutating func setKey(_ key: String) {
        guard let level = levels.last else { return }
        keys.removeLast(keys.count - level.start)
        keys.append(contentsOf: key.utf8)
    }

    /// Sets the index of the current value of an array.
    mutating func setIndex(_ index: Int) {
        if let last = levels.indices.last { levels[last].index = index }
    }

    /// Advances to the next value, if it is in an array.
    mutating func next() {
        guard let last = levels.indices.last, let index = levels[last].index else { return }
        levels[last].index = index + 1
    }

    /// For example `orders[3].price`; at most 200 characters.
    var description: String {
        var text = ""
        for (position, level) in levels.enumerated() {
            let end = position + 1 < levels.count ? levels[position + 1].start : keys.count
            if let index = level.index {
                text += "[\(max(index, 0))]"
            } else if end > level.start {
                let key = String(decoding: keys[level.start..<end].prefix(120), as: UTF8.self)
                text += (text.isEmpty ? "" : ".") + key
            }
        }
        return text.count > 200 ? text.prefix(199) + "…" : text
    }
}
