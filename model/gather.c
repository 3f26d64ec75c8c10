#include "model/gather.h"

void gathering_begin(struct gathering *gathering, const struct model *model) {
    *gathering = (struct gathering){.model = model};
    preparation_begin(&gathering->preparation, model);
}

void gathering_end(struct gathering *gathering) {
    preparation_end(&gathering->preparation);
}

/* Adds the terms of a value. Returns whether it belongs to a feature that the model has; *rank is
 * where the last one was found. */
static bool gather_value(struct gathering *gathering, uint64_t id, double value, uint64_t *rank,
                         struct terms *terms) {
    const struct model_layout *layout = &gathering->model->layout;
    const struct preparation *preparation = &gathering->preparation;
    bool missing = id >= FEATURE_HASHED && preparation_add_mean(preparation, id, terms);
    if (layout->table)
        preparation_add_bin(preparation, id, value, terms);
    *rank = rank_from(layout, *rank, id);
    if (*rank == layout->features || layout->feature_id[*rank] != id) {
        gathering->unseen +=
            !missing && !(id >= FEATURE_HASHED && preparation_add_rare(preparation, id, terms));
        return false;
    }
    terms_add(terms, *rank, value);
    return true;
}

/* Files are read as the model's table says, packs as that of the run: so of these a model of before
 * takes the ids that it knows, which do not rise. */
uint64_t gather_row(struct gathering *gathering, const struct source_rows *rows, uint32_t row,
                    struct terms *terms) {
    const struct table *table = gathering->model->layout.table;
    bool seeded = rows->seeded_id && table && table->ids == TABLE_IDS_SEEDED;
    const uint64_t *id = seeded ? source_row_seeded_ids(rows, row) : source_row_ids(rows, row);
    uint64_t rank = 0, known = 0;
    for (uint64_t i = rows->start[row]; i < rows->start[row + 1]; i++, id++) {
        rank = seeded ? 0 : rank;
        known += gather_value(gathering, *id, rows->value[i], &rank, terms);
    }
    terms_append(terms, &gathering->preparation.absent);
    return known;
}
