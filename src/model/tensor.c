/* Tensors: see tensor.h. */
#include "model/tensor.h"

mr_tensor *mr_tensor_new(const mr_caller *caller, mr_storage *storage) {
    mr_machine *machine = caller->machine;
    mr_tensor *t = mr_slab_alloc(&machine->objects.tensors);
    if (!t) return NULL;
    t->refs = 1;
    t->id = ++machine->counts.next_tensor;
    t->storage = storage;
    t->offset = 0;
    t->generation = storage->generation;
    t->name = NULL;
    t->where = caller->where;
    mr_storage_retain(storage);
    return t;
}

void mr_tensor_release(mr_tensor *tensor) {
    if (!tensor || --tensor->refs > 0) return;
    mr_slab *tensors = &tensor->storage->machine->objects.tensors;
    mr_name_release(tensor->name);
    mr_storage_release(tensor->storage);
    mr_slab_free(tensors, tensor);
}
