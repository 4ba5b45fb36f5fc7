/// Numbers in ascending order that can be taken from either end, and of which any can be removed.
struct WaitingNumbers: Sendable {
    /// The numbers; those before ``taken`` have been removed.
    private var numbers: [UInt64] = []
    private var taken = 0

    var isEmpty: Bool { taken == numbers.count }
    var count: Int { numbers.count - taken }
    var first: UInt64? { isEmpty ? nil : numbers[taken] }
    var last: UInt64? { isEmpty ? nil : numbers.last }

    /// The index at which a number is or would be.
    private func index(of number: UInt64) -> Int {
        var (low, high) = (taken, numbers.count)
        while low < high {
            let middle = (low + high) / 2
            if numbers[middle] < number { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Inserts a new number. Most are greater than all others.
    mutating func insert(_ number: UInt64) {
        if let last, last > number {
            numbers.insert(number, at: index(of: number))
        } else {
            numbers.append(number)
        }
    }

    /// Returns `false` if the number was not there.
    mutating func remove(_ number: UInt64) -> Bool {
        if number == first { return removeFirst() != nil }
        let index = index(of: number)
        guard index < numbers.count, numbers[index] == number else { return false }
        numbers.remove(at: index)
        return true
    }

    mutating func removeLast() -> UInt64? { isEmpty ? nil : numbers.popLast() }

    mutating func removeFirst() -> UInt64? {
        guard let first else { return nil }
        taken += 1
        // Compacts the array now and then, so that the cost of taking from the front does not
        // depend on the number of elements.
        if taken > 32 && taken * 2 >= numbers.count || isEmpty {
            numbers.removeFirst(taken)
            taken = 0
        }
        return first
    }
}
