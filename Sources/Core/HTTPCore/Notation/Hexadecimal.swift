extension String {
    /// A number in hexadecimal digits, at least this many: zeros come first.
    public init(hexadecimal number: some UnsignedInteger, digits: Int, uppercase: Bool = false) {
        let text = String(number, radix: 16, uppercase: uppercase)
        self = String(repeating: "0", count: Swift.max(0, digits - text.utf8.count)) + text
    }
}
