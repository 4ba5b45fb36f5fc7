import AccessPolicy

/// A named list of domains and networks (`access.lists`), from files that were read when the
/// configuration was loaded, or since, when they changed.
package struct AccessList: Sendable {
    /// Its name, to which rules refer.
    package var name: String
    /// The absolute paths of its files.
    package var files: [String]
    /// How the lines of its files are written.
    package var format: DomainListFormat
    /// The names and networks of all files.
    package var domains = DomainList()
    /// What was found in each file.
    package var reports: [DomainListReport] = []
    /// What stat(2) said of each file when it was read: while it says the same, the files need not
    /// be read again. `nil` if it may say the same of other content.
    package var version: [[Int64]]?

    /// Creates a list of nothing.
    package init(name: String, files: [String] = [], format: DomainListFormat = .auto) {
        (self.name, self.files, self.format) = (name, files, format)
    }
}

extension AccessList: Equatable {
    /// Whether two lists are written in the same way and cover the same, whatever else has changed
    /// in their files.
    package static func == (left: AccessList, right: AccessList) -> Bool {
        left.name == right.name && left.files == right.files && left.format == right.format
            && left.domains == right.domains
    }
}
