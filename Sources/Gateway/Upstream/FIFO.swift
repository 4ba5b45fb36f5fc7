/// A queue in an array: taking from the front and appending cost amortised constant time.
struct FIFO<Element> {
    private var elements: [Element?] = []
    private var head = 0

    /// Elements taken before the array is moved up: not for a handful.
    private static var slack: Int { 32 }

    var count: Int { elements.count - head }
    var isEmpty: Bool { count == 0 }
    var first: Element? { isEmpty ? nil : elements[head] }

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = elements[head]
        elements[head] = nil
        head += 1
        if head > Self.slack, head * 2 >= elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return element
    }

    /// Keeps those that the condition holds for, in their order. Takes time for each.
    mutating func keep(where isKept: (Element) -> Bool) {
        elements = elements[head...].filter { $0.map(isKept) ?? false }
        head = 0
    }
}
