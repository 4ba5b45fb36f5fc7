/// How the names of a form say the elements of an array.
public enum FormArrayStyle: String, Sendable, Hashable, CaseIterable {
    /// `k[]` for each, in their order, as AFNetworking and Rails write them. A number between
    /// brackets is a key like others.
    case brackets
    /// `k[0]`, `k[1]` and so on, as Alamofire, jQuery and PHP write them, which alone can say of
    /// arrays of dictionaries and of arrays where each element ends.
    ///
    /// What is read as an array has all numbers from 0 on, without leading zeros, in whatever
    /// order; a number without those before is an error, so that nobody has room made by naming a
    /// large one. `k[]` is read as with ``brackets``. An element that leaves nothing, such as an
    /// empty array, cannot be written.
    case indices
}
