/// Values by prefixes of byte strings. All prefixes of a string are found by one binary search: the
/// one before it in their order begins with each of them.
struct PrefixTable<Value: Sendable>: Sendable {
    private struct Element: Sendable {
        let prefix: [UInt8]
        var value: Value
        /// The longest other one that it begins with; -1 if there is none.
        var parent: Int32 = -1
    }

    /// In lexicographic order.
    private var elements: [Element] = []

    var isEmpty: Bool { elements.isEmpty }
    var count: Int { elements.count }

    subscript(prefix: [UInt8]) -> Value? {
        get { position(of: prefix).flatMap { elements[$0].value } }
        set {
            let place = prefix.withUnsafeBytes { after($0) }
            let known = place > 0 && elements[place - 1].prefix == prefix ? place - 1 : nil
            switch (known, newValue) {
            case (let known?, let value?): elements[known].value = value
            case (let known?, nil):
                elements.remove(at: known)
                link()
            case (nil, let value?): insert(prefix, value, at: place)
            case (nil, nil): break
            }
        }
    }

    private mutating func insert(_ prefix: [UInt8], _ value: Value, at place: Int) {
        for index in elements.indices where elements[index].parent >= place {
            elements[index].parent += 1
        }
        var parent = place - 1
        while parent >= 0, !prefix.starts(with: elements[parent].prefix) {
            parent = Int(elements[parent].parent)
        }
        elements.insert(
            Element(prefix: prefix, value: value, parent: Int32(parent)), at: place)
        // Those that begin with it follow it.
        var index = place + 1
        while index < elements.count, elements[index].prefix.starts(with: prefix) {
            if Int(elements[index].parent) == parent { elements[index].parent = Int32(place) }
            index += 1
        }
    }

    /// Removes many at a time.
    mutating func removeAll(where isGone: ([UInt8]) -> Bool) {
        let count = elements.count
        elements.removeAll { isGone($0.prefix) }
        if elements.count < count { link() }
    }

    private func position(of prefix: [UInt8]) -> Int? {
        let place = prefix.withUnsafeBytes { after($0) }
        return place > 0 && elements[place - 1].prefix == prefix ? place - 1 : nil
    }

    /// The values of all prefixes of `bytes`, the longest first.
    func visit(_ bytes: UnsafeRawBufferPointer, _ body: (Value) -> Void) {
        var index = after(bytes) - 1
        while index >= 0 {
            let element = elements[index]
            if bytes.starts(with: element.prefix) { body(element.value) }
            index = Int(element.parent)
        }
    }

    /// The number of prefixes that are not greater than `bytes`.
    private func after(_ bytes: UnsafeRawBufferPointer) -> Int {
        var (low, high) = (0, elements.count)
        while low < high {
            let middle = (low + high) / 2
            if Self.isGreater(elements[middle].prefix, than: bytes) {
                high = middle
            } else {
                low = middle + 1
            }
        }
        return low
    }

    private static func isGreater(_ left: [UInt8], than right: UnsafeRawBufferPointer) -> Bool {
        left.withUnsafeBytes { left in
            for index in 0..<min(left.count, right.count) where left[index] != right[index] {
                return left[index] > right[index]
            }
            return left.count > right.count
        }
    }

    private mutating func link() {
        var open: [Int] = []
        for index in elements.indices {
            while let last = open.last, !elements[index].prefix.starts(with: elements[last].prefix)
            {
                open.removeLast()
            }
            elements[index].parent = Int32(open.last ?? -1)
            open.append(index)
        }
    }
}
