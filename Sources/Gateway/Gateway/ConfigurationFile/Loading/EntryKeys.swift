import PinfoldConfiguration

/// A key of an entry of `hosts` that says something: its value is another than without the key.
package struct EntryKey: Hashable, Sendable {
    package var name: String
    /// The value as it can be written again, if it is a word or a name; `nil` for lists and
    /// mappings, which may contain secrets.
    package var word: String?

    package init(name: String, word: String?) {
        self.name = name
        self.word = word
    }
}

extension ConfigurationSnapshot {
    /// The keys by which an entry of `hosts` says something, without `match` and `pinsets`, in the
    /// order in which they are documented.
    ///
    /// - Parameter index: which entry.
    package func keys(ofEntry index: Int) -> [EntryKey] {
        let entry = hosts.entries[index]
        let silent = HostEntry(tls: tls)
        let table = HostEntry.table(pinsets: pinsets.map(\.pinset.name))
        return table.keys.compactMap { key in
            guard key.name != "match", key.name != "pinsets" else { return nil }
            let text = key.text(entry)
            // A list that is printed on lines of its own has no text that could differ.
            guard text != key.text(silent) || key.isBlock(entry) != key.isBlock(silent) else {
                return nil
            }
            let isName = key.name == "name"
            return EntryKey(name: key.name, word: text.flatMap { isName || $0.isWord ? $0 : nil })
        }
    }
}

extension String {
    fileprivate var isWord: Bool { !isEmpty && allSatisfy { $0.isASCII && $0.isLetter } }
}
